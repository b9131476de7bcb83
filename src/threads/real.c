/*
 * Threads that stay the kernel's: to gort they are plain ones, and locks between both kinds work.
 *
 *   by their attributes   a real-time policy (or another than the usual), a stack that the program
 *                         brings: it is really used, and is the program's again after the join
 *   by the user's list    GORT_THREADS_REAL=item,item or gort-run -r: the name of the function
 *                         that the thread begins with, or module+0xoffset of it; `all`
 *
 * They count among those whose last end is the program's, where main has called pthread_exit. What
 * ends last in a thread of libc's are destructors of keys: one of ours sets its value again up to
 * the last round.
 *
 * A thread that takes a name on that list runs already, and is bound to a kernel thread from then
 * on (scheduling.c).
 */
#include "threads/threads.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* In a library's constructor that comes before the hook's there is none: all threads are real. */
static const char *list_of_user(void) {
    static const char *list;
    if (core == NULL) return "";
    if (list == NULL && (list = core->env("GORT_THREADS_REAL")) == NULL) list = "";
    return list;
}

static bool is_listed(const char *word) {
    size_t size = strlen(word);
    for (const char *at = list_of_user(); *at;) {
        size_t n = strcspn(at, ",");
        if (n == size && strncmp(at, word, n) == 0) return true;
        at += n;
        at += *at == ',';
    }
    return false;
}

bool is_real_name(const char *name) { return is_listed(name); }

static bool function_listed(void *(*fn)(void *)) {
    const char *name = core->function_at((const void *)fn);
    if (name && is_listed(name)) return true;
    Dl_info of;
    char place[256];
    if (dladdr((const void *)fn, &of) == 0) return false;
    const char *file = strrchr(of.dli_fname, '/');
    snprintf(place, sizeof place, "%s+0x%lx", file ? file + 1 : of.dli_fname,
             (unsigned long)((uintptr_t)fn - (uintptr_t)of.dli_fbase));
    return is_listed(place);
}

/* The symbol tables are asked once for a function. */
#define ANSWERS 256
static bool is_real_function(void *(*fn)(void *)) {
    static uintptr_t answers[ANSWERS]; /* atomic: a function, and whether it is listed */
    if (list_of_user()[0] == '\0') return false;
    uintptr_t *at = &answers[(uintptr_t)fn / 16 % ANSWERS], word = load_rlx(at);
    if (word >> 1 == (uintptr_t)fn) return word & 1;
    bool yes = is_listed("all") || function_listed(fn);
    store_rlx(at, (uintptr_t)fn << 1 | yes);
    return yes;
}

static bool attributes_ask(const pthread_attr_t *attr) {
    int inherits, policy;
    void *lo = NULL;
    size_t size = 0;
    pthread_attr_getinheritsched(attr, &inherits);
    pthread_attr_getschedpolicy(attr, &policy);
    pthread_attr_getstack(attr, &lo, &size); /* lo is below 0 where there is none */
    return (inherits == PTHREAD_EXPLICIT_SCHED && policy != SCHED_OTHER) ||
           (uintptr_t)lo + size != 0;
}

bool asks_for_real(const pthread_attr_t *attr, void *(*fn)(void *)) {
    return (attr && attributes_ask(attr)) || is_real_function(fn);
}

/* ---- their ends ------------------------------------------------------------------------------ */

typedef struct RealStart {
    void *(*fn)(void *);
    void *arg;
} RealStart;

static pthread_key_t round_key;

static void real_ends(void *round) {
    uintptr_t n = (uintptr_t)round;
    if (n == PTHREAD_DESTRUCTOR_ITERATIONS) life_counted();
    else libc(pthread_setspecific)(round_key, (void *)(n + 1));
}

static void real_begin(void) { libc(pthread_key_create)(&round_key, real_ends); }

static void *real_run(void *arg) {
    RealStart start = *(RealStart *)arg;
    gort_free(arg);
    libc(pthread_setspecific)(round_key, (void *)1);
    return start.fn(start.arg);
}

/* What it does inside libc is not seen. */
int real_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg) {
    if (!threads_asked_for() || hook_in_child()) return libc(pthread_create)(id, attr, fn, arg);
    static pthread_once_t begun = PTHREAD_ONCE_INIT;
    libc(pthread_once)(&begun, real_begin);
    waitq_sees_less();
    RealStart *start = gort_alloc(sizeof *start);
    if (start == NULL) return EAGAIN;
    *start = (RealStart){fn, arg};
    lives_begin();
    add_seq(&threads.live, 1);
    int r = libc(pthread_create)(id, attr, real_run, start);
    if (r == 0) return 0;
    gort_free(start);
    life_counted();
    return r;
}
