/* What is done by the number of a kernel thread: names, own and another's, through pthread's calls
 * and prctl; the word that tells a thread's end; attributes of threads that live, from which a
 * program computes its stack's bounds; default attributes, guards, a stack that the program brings.
 */
#include "threads_test.h"

#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static pthread_barrier_t barrier; /* of a thread and main */
static char comm[16];             /* the program's name */

static void meet(void) { pthread_barrier_wait(&barrier); }

static bool is_named(pthread_t id, const char *name) {
    char text[16];
    CHECK(pthread_getname_np(id, text, sizeof text) == 0);
    return strcmp(text, name) == 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void *inherits(void *name) {
    CHECK(is_named(pthread_self(), name));
    return NULL;
}

static void *named(void *arg) {
    char text[16];
    pthread_t heir;
    CHECK(is_named(pthread_self(), comm));
    CHECK(prctl(PR_SET_NAME, "a name that is too long for the kernel") == 0);
    CHECK(prctl(PR_GET_NAME, text) == 0 && strcmp(text, "a name that is ") == 0);
    CHECK(pthread_setname_np(pthread_self(), "a name of 16 by.") == ERANGE);
    CHECK(pthread_getname_np(pthread_self(), text, 15) == ERANGE);
    CHECK(pthread_setname_np(pthread_self(), "first") == 0 && is_named(pthread_self(), "first"));
    CHECK(pthread_create(&heir, NULL, inherits, "first") == 0 && pthread_join(heir, NULL) == 0);
    meet();
    meet();
    CHECK(is_named(pthread_self(), "by main"));
    CHECK(prctl(PR_GET_NAME, text) == 0 && strcmp(text, "by main") == 0);
    CHECK(prctl(PR_GET_DUMPABLE) >= 0);
    return NULL;
}

static void names(void) {
    pthread_t thread;
    char text[20] = "";
    CHECK(prctl(PR_GET_NAME, comm) == 0 && is_named(pthread_self(), comm));
    CHECK(pthread_create(&thread, NULL, named, NULL) == 0);
    meet();
    CHECK(is_named(thread, "first") && is_named(pthread_self(), comm));
    CHECK(pthread_setname_np(thread, "by main") == 0 && is_named(thread, "by main"));
    meet();
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_setname_np(pthread_self(), "mainly") == 0 && is_named(pthread_self(), "mainly"));
    FILE *f = fopen("/proc/self/comm", "r"); /* what ps shows */
    CHECK(f && fgets(text, sizeof text, f) && strcmp(text, "mainly\n") == 0 && fclose(f) == 0);
    CHECK(pthread_create(&thread, NULL, inherits, "mainly") == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void *tells_number(void *arg) {
    CHECK(syscall(SYS_gettid) == gettid() && gettid() != getpid() && gettid() > 0);
    return (void *)(intptr_t)gettid();
}

static void numbers(void) {
    pthread_t threads[20];
    void *value[20];
    CHECK(syscall(SYS_gettid) == getpid());
    for (int i = 0; i < 20; i++) CHECK(pthread_create(&threads[i], NULL, tells_number, NULL) == 0);
    for (int i = 0; i < 20; i++) CHECK(pthread_join(threads[i], &value[i]) == 0);
}

/* ---- set_tid_address ------------------------------------------------------------------------- */

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif
static int alive = 1; /* atomic: until the thread has ended */

/* The kernel may be built without the question (EINVAL). */
static void *tells_end(void *arg) {
    int *word = NULL;
    if (prctl(PR_GET_TID_ADDRESS, &word) == 0) {
        CHECK(*word == syscall(SYS_gettid));
        usleep(1000);
        CHECK(syscall(SYS_set_tid_address, word) == syscall(SYS_gettid));
        CHECK(prctl(PR_GET_TID_ADDRESS, (int **)8) == -1 && errno == EFAULT);
    }
    if (arg == NULL) return NULL;
    usleep(1000);
    CHECK(syscall(SYS_set_tid_address, arg) == syscall(SYS_gettid));
    return NULL;
}

/* libc does not hear of the second one's end: it is not joined. */
static void words(void) {
    pthread_t threads[20], last;
    for (int i = 0; i < 20; i++) CHECK(pthread_create(&threads[i], NULL, tells_end, NULL) == 0);
    for (int i = 0; i < 20; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_create(&last, NULL, tells_end, &alive) == 0);
    CHECK(pthread_detach(last) == 0);
    while (__atomic_load_n(&alive, __ATOMIC_SEQ_CST) == 1)
        syscall(SYS_futex, &alive, FUTEX_WAIT, 1, NULL, NULL, 0);
}

/* ---- attributes ------------------------------------------------------------------------------ */

typedef struct Bounds {
    char *lo;
    size_t size, guard;
    int detached;
    cpu_set_t cpus;
} Bounds;

static Bounds bounds_of(pthread_t id) {
    pthread_attr_t attr;
    Bounds b;
    CHECK(pthread_getattr_np(id, &attr) == 0);
    CHECK(pthread_attr_getstack(&attr, (void **)&b.lo, &b.size) == 0);
    CHECK(pthread_attr_getguardsize(&attr, &b.guard) == 0);
    CHECK(pthread_attr_getdetachstate(&attr, &b.detached) == 0);
    CHECK(pthread_attr_getaffinity_np(&attr, sizeof b.cpus, &b.cpus) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
    return b;
}

static bool is_inside(Bounds b, const void *at) {
    return (size_t)((const char *)at - b.lo) < b.size;
}

static void *own_bounds(void *arg) {
    const Bounds *want = arg;
    Bounds b = bounds_of(pthread_self());
    char here;
    CHECK(is_inside(b, &here));
    CHECK(b.size >= want->size);
    CHECK(b.detached == want->detached && b.guard == want->guard);
    CHECK(CPU_COUNT(&b.cpus) > 0);
    /* down to near its end */
    volatile char *at = b.lo + b.guard + 8192;
    for (; (uintptr_t)at + 8192 < (uintptr_t)&here; at += 4096) *at = 1;
    return NULL;
}

static void with(size_t size, size_t guard, int detached) {
    pthread_attr_t attr;
    pthread_t thread;
    static Bounds want; /* of one that is detached, too */
    want = (Bounds){.size = size, .guard = guard, .detached = detached};
    CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, size) == 0);
    CHECK(pthread_attr_setguardsize(&attr, guard) == 0);
    CHECK(pthread_attr_setdetachstate(&attr, detached) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&thread, &attr, own_bounds, &want) == 0);
        if (detached == PTHREAD_CREATE_JOINABLE) CHECK(pthread_join(thread, NULL) == 0);
        else usleep(30000);
    }
    CHECK(pthread_attr_destroy(&attr) == 0);
}

static void *waits(void *arg) {
    meet();
    meet();
    return arg;
}

static void attributes(void) {
    char here;
    pthread_t thread;
    struct rlimit limit;
    Bounds b = bounds_of(pthread_self());
    CHECK(is_inside(b, &here) && b.detached == PTHREAD_CREATE_JOINABLE);
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
    if (limit.rlim_cur != RLIM_INFINITY)
        CHECK(b.size <= limit.rlim_cur && b.size > limit.rlim_cur / 2);
    with(1 << 20, 4096, PTHREAD_CREATE_JOINABLE);
    with(300000 & ~4095, 0, PTHREAD_CREATE_DETACHED);
    with(4 << 20, 256 << 10, PTHREAD_CREATE_JOINABLE);
    CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
    meet();
    b = bounds_of(thread);
    CHECK(!is_inside(b, &here) && b.size > 100000 && b.detached == PTHREAD_CREATE_JOINABLE);
    CHECK(pthread_detach(thread) == 0);
    CHECK(bounds_of(thread).detached == PTHREAD_CREATE_DETACHED);
    meet();

    pthread_attr_t attr, old;
    CHECK(pthread_getattr_default_np(&old) == 0);
    CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 600 << 10) == 0);
    CHECK(pthread_setattr_default_np(&attr) == 0);
    Bounds want = {.size = 600 << 10, .guard = 4096, .detached = PTHREAD_CREATE_JOINABLE};
    CHECK(pthread_create(&thread, NULL, own_bounds, &want) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_setattr_default_np(&old) == 0);
    pthread_attr_destroy(&old);
    pthread_attr_destroy(&attr);
}

/* ---- guards, given stacks ------------------------------------------------------------------- */

static sigjmp_buf out;
static void on_segv(int signo) { siglongjmp(out, 1); }

static void *touches_guard(void *arg) {
    static char alternate[65536];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction act = {.sa_handler = on_segv, .sa_flags = SA_ONSTACK}, old;
    CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGSEGV, &act, &old) == 0);
    Bounds b = bounds_of(pthread_self());
    CHECK(b.guard == 1 << 20);
    /* glibc counts the guard as part of the stack, or not */
    if (sigsetjmp(out, 1) == 0) {
        *(volatile char *)(b.lo - 4096) = 1;
        *(volatile char *)(b.lo + (1 << 20) - 4096) = 1;
        CHECK(!"a guard");
    }
    CHECK(sigaction(SIGSEGV, &old, NULL) == 0);
    stack.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&stack, NULL) == 0);
    return NULL;
}

static void guard(void) {
    pthread_attr_t attr;
    pthread_t thread;
    CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setguardsize(&attr, 1 << 20) == 0);
    CHECK(pthread_create(&thread, &attr, touches_guard, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attr);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *on_given_stack(void *stack) {
    char here;
    CHECK((size_t)(&here - (char *)stack) < 1 << 20);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        sum++;
        if (i % 100 == 0) usleep(10);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *adds(void *arg) {
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        sum++;
        if (i % 100 == 50) sched_yield();
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void given_stack(void) {
    pthread_attr_t attr;
    pthread_t threads[8];
    void *stacks[4];
    CHECK(pthread_attr_init(&attr) == 0);
    for (int i = 0; i < 8; i++) {
        if (i % 2) {
            CHECK(pthread_create(&threads[i], NULL, adds, NULL) == 0);
            continue;
        }
        stacks[i / 2] =
            mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(stacks[i / 2] != MAP_FAILED);
        CHECK(pthread_attr_setstack(&attr, stacks[i / 2], 1 << 20) == 0);
        CHECK(pthread_create(&threads[i], &attr, on_given_stack, stacks[i / 2]) == 0);
    }
    for (int i = 0; i < 8; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        if (i % 2 == 0) CHECK(munmap(stacks[i / 2], 1 << 20) == 0); /* it is the program's again */
    }
    CHECK(sum == 8000);
    pthread_attr_destroy(&attr);
}

int main(void) {
    pthread_barrier_init(&barrier, NULL, 2);
    names();
    numbers();
    words();
    attributes();
    guard();
    given_stack();
    return 0;
}
