/*
 * The end: one line on stderr, the dump, abort().
 *
 * Any thread may call fatal() in any state: holding runtime locks, on g0, in a handler, with
 * corrupted memory. It takes no lock and allocates nothing. One thread speaks; others that fail
 * meanwhile wait here for the process to end, so that two reports do not mix. (A crash that goes to
 * a handler of the program's may not be the end: then they go on, see debug/faults.c.) A thread
 * that fails again while it prints aborts at once: what was printed by then stands.
 *
 * In a child (fork.c) the goroutines are the parent's; by vfork, so are `speaker` and libc's lock
 * in abort(). So a child prints the line only, and one that shares the memory exits with status 2.
 */
#include "base/deadline.h"
#include "base/fatal.h"
#include "base/fork.h"
#include "base/print.h"
#include "base/upstairs.h"
#include "os/os.h"

#include <stdlib.h>

static int speaker; /* atomic: the tid of the thread that reports; 0: nobody */

/* The process exits while another thread reports: the report is let finish, and the status is the
 * abort's. Not for ever: a program may leave its handler of SIGABRT by a jump. */
#define LET_FINISH (5 * GORT_SEC)
static void let_finish(void) {
    int64_t until = time_after(os_now(), LET_FINISH);
    if (in_forked_child()) return;
    for (int who; (who = load_rlx(&speaker)) != 0 && who != os_gettid() && os_now() < until;)
        os_nap(GORT_MS);
}
void fatal_watch_exit(void) {
    static bool watched; /* by the one that starts a runtime */
    if (!watched) watched = atexit(let_finish) == 0;
}

bool first_to_speak(void) {
    int nobody = 0;
    return cas_acq(&speaker, &nobody, os_gettid());
}

bool speak_begin(void) {
    while (!first_to_speak()) {
        if (load_rlx(&speaker) == os_gettid()) return false;
        os_nap(10 * GORT_MS);
    }
    return true;
}

void speak_end(void) {
    store_rel(&speaker, 0); /* pairs with first_to_speak: one after the other */
}

typedef struct Speech {
    uintptr_t from; /* where the trace begins */
    const char *format;
    va_list ap;
} Speech;

/* Names the goroutine that runs here, where the text does not: the dump begins with it, too. */
static void name_goroutine(Out *o, const char *format) {
    M *m = getm();
    G *gp = m && !m->plain ? m->curg : NULL;
    if (gp && gp->id && !begins_with(format, "goroutine ")) out_fmt(o, " (goroutine %lu)", gp->id);
}

/* One line in one write, whatever its length. */
static void say_line(Speech *s, bool name) {
    char buf[512];
    Out o = {.fd = -1, .size = sizeof buf - 1, .buf = buf};
    out_str(&o, "gort: fatal: ");
    out_vfmt(&o, s->format, s->ap);
    if (name) name_goroutine(&o, s->format);
    buf[o.used++] = '\n';
    write_all(2, buf, o.used);
}

static long say(void *arg) {
    Speech *s = arg;
    bool child = in_any_child();
    if (!child && !speak_begin()) abort();
    say_line(s, !child);
    if (child) return 0;
    print_fd(2, "\n");
    if (upstairs.last_words) upstairs.last_words(s->from);
    return 0;
}

static void speak(uintptr_t from, const char *format, va_list ap) {
    Speech s = {.from = from, .format = format};
    M *m = getm();
    bool child = in_any_child(); /* it may have its parent's M */
    if (m && !child) m->locks++; /* no preemption from here on */
    va_copy(s.ap, ap);
    if (upstairs.with_room) upstairs.with_room(m, say, &s);
    else say(&s);
    va_end(s.ap);
}

void fatal_report(uintptr_t from, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    speak(from ? from : (uintptr_t)__builtin_return_address(0), format, ap);
    va_end(ap);
}

NORETURN void fatal(const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    speak((uintptr_t)__builtin_return_address(0), format, ap);
    va_end(ap);
    if (!in_forked_child() && in_any_child()) child_exits();
    abort();
}
