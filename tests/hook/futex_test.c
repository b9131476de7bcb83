/* The futex system call of a goroutine: it parks, is woken from any thread, and answers as the
 * kernel. */
#include "hook.h"
#include <limits.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <time.h>

enum { CROWD = 300 };
static uint32_t word, other;
static int done, woken;

static long futex(uint32_t *w, int op, uint32_t value, const struct timespec *ts, uint32_t *w2,
                  uint32_t value3) {
    return syscall(SYS_futex, w, op, value, ts, w2, value3);
}
static long wait_private(uint32_t value) {
    return futex(&word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}
static long wake(int n) { return futex(&word, FUTEX_WAKE_PRIVATE, (uint32_t)n, NULL, NULL, 0); }

static void waiter(void *arg) {
    while (get(&word) == 0) CHECK(wait_private(0) == 0 || errno == EAGAIN);
    add(&done, 1);
}

static void *plain_waiter(void *arg) {
    waiter(arg);
    return NULL;
}

static void *plain_waker(void *arg) {
    long n = wake(INT_MAX);
    CHECK(n >= CROWD);
    return NULL;
}

/* Hundreds wait without threads, one plain thread among them, and a plain thread wakes all. */
static void crowd(void) {
    pthread_t thread, waker;
    set(&done, 0);
    set(&word, 0);
    CHECK_EQ(pthread_create(&thread, NULL, plain_waiter, NULL), 0);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(gort_go(waiter, NULL), 0);
    wait_for_waiting("semacquire", CROWD);
    CHECK_LT(threads(), 40);
    CHECK_EQ(get(&done), 0);
    set(&word, 1);
    CHECK_EQ(pthread_create(&waker, NULL, plain_waker, NULL), 0);
    wait_until(get(&done) == CROWD + 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pthread_join(waker, NULL), 0);
}

static void one_wait(void *arg) {
    CHECK_EQ(wait_private(0), 0);
    add(&woken, 1);
}

/* As many as were asked for, and the answer says so. */
static void count(void) {
    set(&word, 0);
    set(&woken, 0);
    for (int i = 0; i < 10; i++) CHECK_EQ(gort_go(one_wait, NULL), 0);
    wait_for_waiting("semacquire", 10);
    CHECK_EQ(wake(1), 1);
    wait_until(get(&woken) == 1);
    CHECK_EQ(wake(3), 3);
    wait_until(get(&woken) == 4);
    CHECK_EQ(wake(100), 6);
    wait_until(get(&woken) == 10);
    CHECK_EQ(wake(100), 0);
}

/* The younger call that only wakes, where the kernel has it. */
static long wake2(uint32_t bits, int n) {
    return syscall(454, &word, (unsigned long)bits, n, 0x82); /* 32 bits, private */
}
static void count2(void) {
    set(&word, 0);
    set(&woken, 0);
    for (int i = 0; i < 5; i++) CHECK_EQ(gort_go(one_wait, NULL), 0);
    wait_for_waiting("semacquire", 5);
    CHECK_EQ(wake2(1, 2), 2);
    wait_until(get(&woken) == 2);
    long r = wake2(UINT32_MAX, 100);
    CHECK_EQ(r, 3);
    wait_until(get(&woken) == 5);
    r = wake2(UINT32_MAX, 100);
    CHECK(r == 0 || (r == -1 && (errno == ENOSYS || errno == EPERM)));
}

static void bit_wait(void *arg) {
    uint32_t bits = (uint32_t)(uintptr_t)arg;
    CHECK_EQ(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, bits), 0);
    add(&woken, (int)bits);
}

static void bitset(void) {
    set(&woken, 0);
    for (uintptr_t b = 1; b <= 4; b *= 2) CHECK_EQ(gort_go(bit_wait, (void *)b), 0);
    wait_for_waiting("semacquire", 3);
    CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, 8), 0);
    CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, 2 | 8), 1);
    wait_until(get(&woken) == 2);
    CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, 5), 2);
    wait_until(get(&woken) == 7);
    CHECK_FAILS(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0), EINVAL);
}

/* Some wake more than one word's: nobody is left behind. */
static void requeue(void) {
    set(&woken, 0);
    set(&other, 0);
    for (int i = 0; i < 5; i++) CHECK_EQ(gort_go(one_wait, NULL), 0);
    wait_for_waiting("semacquire", 5);
    CHECK_FAILS(syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 1, INT_MAX, &other, 1),
                EAGAIN);
    CHECK_EQ(get(&woken), 0);
    CHECK_EQ(syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 1, INT_MAX, &other, 0), 5);
    wait_until(get(&woken) == 5);
    CHECK_EQ(gort_go(one_wait, NULL), 0);
    wait_for_waiting("semacquire", 1);
    CHECK_EQ(syscall(SYS_futex, &other, FUTEX_WAKE_OP_PRIVATE, 1, 1, &word,
                     FUTEX_OP(FUTEX_OP_SET, 7, FUTEX_OP_CMP_EQ, 0)),
             1);
    wait_until(get(&woken) == 6);
    CHECK_EQ(get(&word), 7);
    set(&word, 0);
}

static struct timespec in_ms(clockid_t clock, int ms) {
    struct timespec at;
    clock_gettime(clock, &at);
    int64_t ns = at.tv_sec * 1000000000LL + at.tv_nsec + ms * 1000000LL;
    at.tv_sec = ns / 1000000000;
    at.tv_nsec = ns % 1000000000;
    return at;
}

static void times(void) {
    struct timespec ts = {0, 2000000}, bad = {0, 1000000000}, before = {-1, 0};
    int64_t from = gort_now();
    CHECK_FAILS(futex(&word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0), ETIMEDOUT);
    CHECK_GE(gort_now() - from, 2000000);
    CHECK_FAILS(futex(&word, FUTEX_WAIT, 0, &ts, NULL, 0), ETIMEDOUT); /* shared */
    CHECK_FAILS(futex(&word, FUTEX_WAIT_PRIVATE, 0, &bad, NULL, 0), EINVAL);
    CHECK_FAILS(futex(&word, FUTEX_WAIT_PRIVATE, 0, &before, NULL, 0), EINVAL);
    CHECK_FAILS(futex(&word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0), EAGAIN);
    CHECK_FAILS(futex((uint32_t *)((char *)&word + 1), FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0),
                EINVAL);
    CHECK_FAILS(futex(NULL, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0), EFAULT);
    ts = in_ms(CLOCK_MONOTONIC, 2);
    CHECK_FAILS(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &ts, NULL, UINT32_MAX), ETIMEDOUT);
    ts = in_ms(CLOCK_REALTIME, 2);
    CHECK_FAILS(
        futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &ts, NULL, UINT32_MAX),
        ETIMEDOUT);
    ts = in_ms(CLOCK_MONOTONIC, -2);
    CHECK_FAILS(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &ts, NULL, UINT32_MAX), ETIMEDOUT);
}

static uint32_t *common; /* memory of two processes */

static void shared_wait(void *arg) {
    uint32_t *w = arg;
    CHECK_EQ(futex(w, FUTEX_WAIT, 0, NULL, NULL, 0), 0);
    add(&woken, 1);
}

static void *shared_waker(void *arg) {
    CHECK_EQ(futex(arg, FUTEX_WAKE, 2, NULL, NULL, 0), 2);
    return NULL;
}

/* Without FUTEX_PRIVATE_FLAG: woken from here, soon and late; and by another process that changes
 * the word. */
static void shared(void) {
    pthread_t waker;
    int status;
    set(&woken, 0);
    CHECK_EQ(gort_go(shared_wait, &word), 0);
    CHECK_EQ(gort_go(shared_wait, &word), 0);
    wait_for_waiting("semacquire", 2);
    gort_sleep(60 * GORT_MS); /* they have asked whose memory it is */
    CHECK_EQ(get(&woken), 0);
    CHECK_EQ(pthread_create(&waker, NULL, shared_waker, &word), 0);
    wait_until(get(&woken) == 2);
    CHECK_EQ(pthread_join(waker, NULL), 0);
    common = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(gort_go(shared_wait, common), 0);
    wait_for_waiting("semacquire", 1);
    gort_sleep(60 * GORT_MS);
    /* the word as it was, while they look now and then whether another process has changed it */
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(gort_go(shared_wait, common), 0);
        wait_for_waiting("semacquire", 2);
        if (i % 8 == 0) gort_sleep(i % 5 * GORT_MS);
        CHECK_EQ(futex(common, FUTEX_WAKE, 1, NULL, NULL, 0), 1);
        wait_until(get(&woken) == 3 + i);
    }
    set(&woken, 2);
    pid_t pid = fork();
    if (pid == 0) {
        *(volatile uint32_t *)common = 1;
        syscall(SYS_futex, common, FUTEX_WAKE, 1, NULL, NULL, 0);
        _exit(0);
    }
    wait_until(get(&woken) == 3);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(munmap(common, 4096), 0);
}

/* The kernel itself clears a word, and wakes, when a thread ends: in private memory, too. */
static uint32_t alive, over;

static void *short_life(void *arg) {
    set(&alive, 1);
    syscall(SYS_set_tid_address, &alive); /* not libc's any more: it is detached */
    while (get(&over) == 0) usleep(1000);
    return NULL;
}

static void joins(void *arg) {
    while (get(&alive) != 0)
        CHECK(futex(&alive, FUTEX_WAIT, 1, NULL, NULL, 0) == 0 || errno == EAGAIN);
    add(&woken, 1);
}

static void thread_ends(void) {
    pthread_t t;
    set(&woken, 0);
    CHECK_EQ(pthread_create(&t, NULL, short_life, NULL), 0);
    CHECK_EQ(pthread_detach(t), 0);
    wait_until(get(&alive) == 1);
    CHECK_EQ(gort_go(joins, NULL), 0);
    wait_for_waiting("semacquire", 1);
    gort_sleep(60 * GORT_MS); /* it has asked whose memory it is */
    CHECK_EQ(get(&woken), 0);
    set(&over, 1);
    wait_until(get(&woken) == 1);
}

/* Other calls are as they were: six arguments, the result, errno. */
static void others(void) {
    char text[] = "abc";
    int fds[2];
    struct iovec from = {text, 3}, to = {(char[4]){0}, 3};
    CHECK_EQ(syscall(SYS_getpid), getpid());
    CHECK_FAILS(syscall(SYS_close, -1), EBADF);
    CHECK_EQ(syscall(SYS_process_vm_readv, getpid(), &to, 1UL, &from, 1UL, 0UL), 3);
    CHECK_EQ(memcmp(to.iov_base, "abc", 3), 0);
    /* the sixth */
    CHECK_FAILS(syscall(SYS_process_vm_readv, getpid(), &to, 1UL, &from, 1UL, 1UL), EINVAL);
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(syscall(SYS_write, fds[1], text, 3UL), 3);
    close(fds[0]), close(fds[1]);
}

/* Two that hand each other a turn: a lost wake-up would stop them. */
static void player(void *arg) {
    uint32_t me = (uint32_t)(uintptr_t)arg;
    for (int i = 0; i < 5000; i++) {
        while (get(&word) != me)
            CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 1 - me, NULL, NULL, 0) == 0 || errno == EAGAIN);
        set(&word, 1 - me);
        wake(1);
    }
    add(&done, 1);
}

static void *plain_player(void *arg) {
    player(arg);
    return NULL;
}

static void pairs(bool plain) {
    pthread_t t;
    set(&done, 0);
    set(&word, 0);
    CHECK_EQ(gort_go(player, (void *)0), 0);
    if (plain) CHECK_EQ(pthread_create(&t, NULL, plain_player, (void *)1), 0);
    else CHECK_EQ(gort_go(player, (void *)1), 0);
    wait_until(get(&done) == 2);
    if (plain) CHECK_EQ(pthread_join(t, NULL), 0);
    set(&word, 0);
}

/* What the kernel is asked before a goroutine parks puts no thread to sleep. */
static void asks_awake(void) {
    enum { TIMES = 1000 };
    struct timespec over = {0, 0};
    struct rusage before, after;
    set(&word, 0);
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < TIMES; i++)
        CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 0, &over, NULL, 0) == -1 && errno == ETIMEDOUT);
    getrusage(RUSAGE_THREAD, &after);
    CHECK_LT(after.ru_nvcsw - before.ru_nvcsw, TIMES / 4);
}

static int run(int argc, char **argv) {
    asks_awake();
    others();
    crowd();
    count();
    count2();
    bitset();
    requeue();
    times();
    shared();
    thread_ends();
    pairs(false);
    pairs(true);
    return 0;
}
HOOK_MAIN(run)
