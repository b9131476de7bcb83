/* web/page.html, included as it is by the assembler. */
#include "inspect/page.h"

__asm__(".pushsection .rodata\n"
        ".globl page_html\n.hidden page_html\n"
        ".globl page_html_end\n.hidden page_html_end\n"
        "page_html:\n"
        ".incbin \"web/page.html\"\n"
        "page_html_end:\n"
        ".byte 0\n"
        ".popsection\n");
