#define _GNU_SOURCE 1 /* the names of registers in a ucontext */
/* The EINTR repair looks at the code before a `syscall` instruction: at the edge of a mapping, as a
 * compiler at run time may place it, there is nothing to look at, and nothing may fault. */
#include "../lib/test.h"

#ifdef __x86_64__
#include "arch.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

static char stack[64 << 10];
static unsigned char *code; /* a page behind one that cannot be read */

/* The code at offset `at` of the page has made a system call, interrupted: where does it go on? */
static long goes_on_at(long at) {
    static ucontext_t uc;
    greg_t *r = uc.uc_mcontext.gregs;
    r[REG_RAX] = -EINTR;
    r[REG_RIP] = (greg_t)(code + at);
    r[REG_RSP] = (greg_t)(stack + sizeof stack - 64);
    arch_repair_eintr(&uc);
    return r[REG_RIP] - (greg_t)code;
}

/* mov $SYS_poll, %eax; syscall */
static void put_call(long at, bool with_number) {
    static const unsigned char call[] = {0xb8, SYS_poll, 0, 0, 0, 0x0f, 0x05};
    memset(code, 0x90, 4096);
    memcpy(code + at, with_number ? call : call + 5, with_number ? 7 : 2);
}

/* prefix; xor %eax, %eax; mov 8(%rsp), %rdi; syscall */
static void put_read(long at, unsigned char prefix) {
    const unsigned char call[] = {prefix, 0x31, 0xc0, 0x48, 0x8b, 0x7c, 0x24, 8, 0x0f, 0x05};
    memset(code, 0x90, 4096);
    memcpy(code + at, call, sizeof call);
}

int main(void) {
    unsigned char *two = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(two != MAP_FAILED);
    code = two + 4096;
    CHECK_EQ(mprotect(code, 4096, PROT_READ | PROT_WRITE), 0);
    for (long at = 0; at < 32; at++) {
        put_call(at, true);
        CHECK_EQ(goes_on_at(at + 7), at);
        put_call(at, false);
        CHECK_EQ(goes_on_at(at + 2), at + 2); /* nobody knows its number */
        put_read(at, 0x90);
        CHECK_EQ(goes_on_at(at + 10), at + 1); /* its number is 0 */
        put_read(at, 0x45);
        CHECK_EQ(goes_on_at(at + 10), at + 10); /* xor %r8d, %r8d */
    }
    put_call(4096 - 7, true);
    CHECK_EQ(goes_on_at(4096), 4096 - 7);
    for (long at = 0; at < 2; at++) CHECK_EQ(goes_on_at(at), at); /* no instruction before it */
    return 0;
}
#else
int main(void) { SKIP("other processors read the code by read_memory alone"); }
#endif
