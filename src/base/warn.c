/* Short of descriptors, memory, threads, /proc or a system call, a call fails with its errno, and
 * what no call promises (preemption, retake, guards, the report of a deadlock) goes on by another
 * way. Where there is none the program is told here, when it first matters, once per kind. */
#include "base/warn.h"
#include "base/atomic.h"
#include "base/print.h"

static uint32_t said[WARNINGS]; /* atomic */

void warn_once(int which, const char *format, ...) {
    char buf[320];
    Out o = {.fd = -1, .size = sizeof buf - 1, .buf = buf};
    va_list ap;
    if (load_rlx(&said[which]) || xchg_seq(&said[which], 1)) return;
    out_str(&o, "gort: warning: ");
    va_start(ap, format);
    out_vfmt(&o, format, ap);
    va_end(ap);
    buf[o.used++] = '\n';
    write_all(2, buf, o.used);
}
