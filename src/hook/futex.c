/*
 * The futex system call, as libraries make it: syscall(SYS_futex, ...). GLib's GMutex and GCond,
 * C++20's semaphores, latches, barriers and atomic waits, and Rust's locks come this way.
 *
 * A goroutine that would wait has the kernel check the word and its address first. Then it parks in
 * a queue (waitqueue.c) at the word's address + 1, which no pthread object has. A Dekker pair:
 *
 *     waiter   queues itself, fence, reads the word: another value is EAGAIN, else it parks
 *     waker    the program has changed the word, fence, reads the bucket's count, wakes
 *
 * A waker by syscall(SYS_futex) or syscall(SYS_futex_wake), also in a signal handler, wakes
 * goroutines first, and threads by the kernel for what is left of its number. SYS_futex_wait,
 * SYS_futex_waitv and SYS_futex_requeue are the kernel's: they wait with their thread, and requeue
 * threads only. Code with its own instruction for it (libc's locks, libgomp) has it on both sides.
 *
 * Another process may change and wake a shared futex (without FUTEX_PRIVATE_FLAG: libstdc++ uses no
 * other); in any memory the kernel may, at the end of a thread (CLONE_CHILD_CLEARTID, robust
 * lists). So its waiter looks at the word at intervals that double up to 16 ms, and then asks once
 * whether the memory is shared at all. If not, only the kernel is left, and the intervals grow to
 * 128 ms; without end where all threads of the program are goroutines. A wake-up by another process
 * that does not change the word is lost.
 *
 * FUTEX_LOCK_PI belongs to a thread's number: a goroutine waits in gort_blocking. FUTEX_REQUEUE and
 * FUTEX_WAKE_OP wake all goroutines that they might concern, which a futex's waiter has to expect.
 */
#include "threads/threads.h"

#include <linux/futex.h>

typedef struct Futex {
    uint32_t *word;
    long op, value;
    long timeout; /* or the second value, of commands without a timeout */
    long word2, value3;
} Futex;

static const void *futex_queue(const uint32_t *word) {
    return (const char *)(const void *)word + 1;
}
static long futex_command(const Futex *f) { return f->op & FUTEX_CMD_MASK; }
static long futex_call(void *futex) {
    const Futex *f = futex;
    return sys(SYS_futex, f->word, f->op, f->value, f->timeout, f->word2, f->value3);
}

/* ---- is it shared memory? -------------------------------------------------------------------- */

/* /proc/self/maps, a line at a time: "first-last rwxp ..." */
typedef struct Maps {
    int fd;
    long n, at;
    char text[1024];
} Maps;

static int maps_char(Maps *m) {
    if (m->at == m->n) {
        m->at = 0;
        while ((m->n = sys(SYS_read, m->fd, m->text, sizeof m->text, 0, 0, 0)) == -EINTR) {}
    }
    return m->at < m->n ? m->text[m->at++] : -1;
}

/* The number up to the next character that is no digit, which is eaten too. */
static uintptr_t maps_number(Maps *m) {
    uintptr_t n = 0;
    for (int c; (c = maps_char(m)) >= '0';)
        n = n * 16 + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    return n;
}

/* Reading the whole file may take long. So one goroutine at a time reads it, in gort_blocking, and
 * the answer holds for all, for a while: up to the next shared mapping on both sides. A goroutine
 * that comes meanwhile asks again later. A stale answer delays a look. */
typedef struct Answer {
    uintptr_t at;          /* asked about; the answer holds from first up to last */
    uintptr_t first, last; /* 0, UINTPTR_MAX: so far, or unknown */
    bool is_private;
    int64_t until;
} Answer;
#define ANSWERS 8
#define ANSWER_LASTS GORT_SEC

static struct {
    Lock lock;
    /* lock: */
    Answer answer[ANSWERS];
    unsigned next;
    /* the runtime (core->life) whose goroutine reads; 0: none. A later runtime ignores it */
    uint32_t reader;
} memory;

/* Reads up to the next shared mapping behind `at`. If no mapping holds `at`, all is unknown. */
static void maps_find(Maps *m, Answer *a) {
    bool found = false;
    uintptr_t at = a->at;
    for (uintptr_t first, last; (first = maps_number(m), last = maps_number(m)) != 0;) {
        int how = 0;
        for (int i = 0; i < 4; i++) how = maps_char(m);
        bool in = at >= first && at < last, shared = how != 'p';
        found |= in;
        a->is_private |= in && !shared;
        if (in && shared) a->first = first;
        if (shared && first > at) a->last = first;
        else if (shared) *(in ? &a->last : &a->first) = last;
        if (a->last != UINTPTR_MAX) break;
        for (int c = how; c != '\n' && c != -1;) c = maps_char(m);
    }
    if (!found) *a = (Answer){.last = UINTPTR_MAX};
}

/* In gort_blocking, which returns here even if the runtime has ended: nothing is left open. */
static long maps_read(void *arg) {
    int flags = O_RDONLY | O_CLOEXEC;
    Maps m = {.fd = (int)sys(SYS_openat, AT_FDCWD, "/proc/self/maps", flags, 0, 0, 0)};
    if (m.fd < 0) return 0;
    maps_find(&m, arg);
    sys(SYS_close, m.fd, 0, 0, 0, 0, 0);
    return 0;
}

static void answer_put(const Answer *a) {
    M *m = core->enter();
    core->lock(&memory.lock);
    memory.reader = 0;
    memory.answer[memory.next++ % ANSWERS] = *a;
    core->unlock(&memory.lock);
    core->leave(m);
}

/* SHARED: or unknown. ASK: no answer, the caller finds it. LATER: another goroutine is at it. */
enum { PRIVATE, SHARED, ASK, LATER };
static int answer_get(uintptr_t at) {
    int64_t now = gort_now();
    M *m = core->enter();
    core->lock(&memory.lock);
    int r = memory.reader == core->life() ? LATER : ASK;
    for (const Answer *a = memory.answer; a < memory.answer + ANSWERS; a++)
        if (at >= a->first && at < a->last && now < a->until) r = a->is_private ? PRIVATE : SHARED;
    if (r == ASK) memory.reader = core->life();
    core->unlock(&memory.lock);
    core->leave(m);
    return r;
}

/* On a goroutine. */
static int memory_is(const void *at) {
    Answer a = {.at = (uintptr_t)at, .last = UINTPTR_MAX};
    int r = answer_get(a.at);
    if (r != ASK) return r;
    if (known.simulated) maps_read(&a); /* nobody runs meanwhile */
    else gort_blocking(maps_read, &a);
    a.until = deadline_after(ANSWER_LASTS);
    answer_put(&a);
    return a.is_private ? PRIVATE : SHARED;
}

/* ---- waiting and waking ---------------------------------------------------------------------- */

/* Or -EINVAL. FUTEX_WAIT has a duration, FUTEX_WAIT_BITSET a time of a clock. */
static int64_t futex_deadline(const Futex *f) {
    const struct timespec *ts = (const struct timespec *)f->timeout;
    int64_t deadline;
    if (!timeout_deadline(ts, &deadline)) return -EINVAL;
    if (ts == NULL || futex_command(f) == FUTEX_WAIT) return deadline;
    return clock_deadline(f->op & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, ts);
}

static uint32_t futex_bits(const Futex *f, long with) {
    return futex_command(f) == with ? (uint32_t)f->value3 : EVERY_BIT;
}

/* What the kernel says to the call; 0: it would wait. Asked by a requeue of nobody. A wait whose
 * time is over would sleep, for as long as the thread's timers may be late (50 us). */
static long futex_would_wait(const Futex *f) {
    if (futex_bits(f, FUTEX_WAIT_BITSET) == 0) return -EINVAL;
    if (f->op & FUTEX_CLOCK_REALTIME && futex_command(f) == FUTEX_WAIT) return -ENOSYS;
    long op = FUTEX_CMP_REQUEUE | (f->op & FUTEX_PRIVATE_FLAG);
    return sys(SYS_futex, f->word, op, 0, 0, f->word, f->value);
}

/* Until a waker hits the entry, the word differs or the deadline has passed. */
static long futex_park(const Futex *f, int64_t deadline) {
    WaitEntry w;
    waitq_join(&w, futex_queue(f->word), futex_bits(f, FUTEX_WAIT_BITSET));
    if (load_rlx(f->word) == (uint32_t)f->value)
        return waitq_wait(&w, WAIT_SEMA, deadline) ? 0
               : deadline > gort_now()             ? -EINTR
                                                   : -ETIMEDOUT;
    return waitq_leave(&w) ? 0 : -EAGAIN;
}

#define PAUSE_PRIVATE (128 * GORT_MS) /* only the kernel changes it unseen */

/* The word may change unseen. The entry stays queued: a waker need not change the word. */
static long futex_park_and_look(const Futex *f, int64_t deadline) {
    WaitEntry w;
    bool same;
    int whose = LATER;
    int64_t until = 0, pause = PAUSE_FIRST, most = PAUSE_MOST;
    waitq_join(&w, futex_queue(f->word), futex_bits(f, FUTEX_WAIT_BITSET));
    w.naps = true;
    while ((same = load_rlx(f->word) == (uint32_t)f->value) && until < deadline) {
        until = deadline_after(pause);
        if (until > deadline) until = deadline;
        if (waitq_wait(&w, WAIT_SEMA, until)) return 0;
        if (interrupted()) return waitq_leave(&w) ? 0 : -EINTR;
        if (pause == PAUSE_MOST && whose == LATER) {
            whose = memory_is(f->word);
            if (whose == PRIVATE) most = waitq_sees_all() ? GORT_FOREVER : PAUSE_PRIVATE;
        }
        if (most == GORT_FOREVER) pause = most;
        else if (pause < most) pause *= 2;
    }
    return waitq_leave(&w) || !same ? 0 : -ETIMEDOUT;
}

static long futex_wait(Futex *f) {
    if (f->timeout && !readable((void *)f->timeout, sizeof(struct timespec)))
        return returned(futex_call(f));
    int64_t deadline = futex_deadline(f);
    if (deadline == -EINVAL) return returned(-EINVAL);
    long r = futex_would_wait(f);
    if (r != 0) return returned(r);
    bool private = f->op & FUTEX_PRIVATE_FLAG;
    return returned(staying_until(deadline, private ? futex_park(f, deadline)
                                                    : futex_park_and_look(f, deadline)));
}

/* Goroutines first, then threads for what is left of the number; even 0 means one. */
static long futex_wake(Futex *f) {
    uint32_t most = f->value > 0 ? (uint32_t)f->value : 1;
    uint32_t n = waitq_wake_anywhere(futex_queue(f->word), most, futex_bits(f, FUTEX_WAKE_BITSET));
    if (n >= most) return n;
    f->value = (long)(most - n);
    long r = futex_call(f);
    return r < 0 ? returned(r) : r + n;
}

/* The kernel serves the threads; then all goroutines at both words are woken. */
static long futex_wake_both(Futex *f) {
    long r = futex_call(f);
    if (r < 0) return returned(r);
    r += waitq_wake_anywhere(futex_queue(f->word), UINT32_MAX, EVERY_BIT);
    if (futex_command(f) == FUTEX_WAKE_OP)
        r += waitq_wake_anywhere(futex_queue((uint32_t *)f->word2), UINT32_MAX, EVERY_BIT);
    return r;
}

/* Goroutines may wait there. Pairs with waitq_join, after which the waiter reads the word. */
static bool futex_has_waiters(const uint32_t *word) {
    fence_full();
    return waitq_has(futex_queue(word));
}

#ifndef SYS_futex_wake
#define SYS_futex_wake 454 /* everywhere */
#endif
#define FUTEX2_SIZES 3 /* of its flags */
#define FUTEX2_U32 2

/* futex_wake(2), for goroutines that wait by futex(2). The kernel refuses what is not valid. */
static COLD long futex2_wake(uint32_t *word, unsigned long bits, int most, unsigned flags) {
    bool usual = (flags & FUTEX2_SIZES) == FUTEX2_U32 && (uint32_t)bits == bits;
    uint32_t n = 0;
    if (usual && most > 0 && futex_has_waiters(word))
        n = waitq_wake_anywhere(futex_queue(word), (uint32_t)most, (uint32_t)bits);
    if (n > 0 && n == (uint32_t)most) return n;
    long r = sys(SYS_futex_wake, word, bits, most - (int)n, flags, 0, 0);
    return r >= 0 ? r + n : n > 0 ? n : returned(r);
}

static COLD long futex(Futex *f) {
    POINT(syscall);
    switch (futex_command(f)) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        if (here()) return futex_wait(f);
        break;
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_WAIT_REQUEUE_PI:
        if (here()) return returned(stay_blocking(futex_call, f));
        break;
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
        if (futex_has_waiters(f->word)) return futex_wake(f);
        break;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_WAKE_OP:
        if (futex_has_waiters(f->word) || futex_has_waiters((void *)f->word2))
            return futex_wake_both(f);
        break;
    }
    return libc(syscall)(SYS_futex, f->word, f->op, f->value, f->timeout, f->word2, f->value3);
}

/* Declared with six arguments, given or not: a variadic function's come in the same registers. It
 * ends in a jump to libc's, so that a call may return twice or on another stack. */
HOOK long hook_syscall(long number, long a, long b, long c, long d, long e,
                       long f) __asm__("syscall");
HOOK long hook_syscall(long number, long a, long b, long c, long d, long e, long f) {
    if (unlikely(number == SYS_futex_wake))
        return futex2_wake((uint32_t *)a, (unsigned long)b, (int)c, (unsigned)d);
    long r;
    if (unlikely(threads.on) && number != SYS_futex && thread_syscall(number, a, b, c, &r))
        return returned(r);
    if (likely(number != SYS_futex) || called_by_allocator())
        return libc(syscall)(number, a, b, c, d, e, f);
    return futex(&(Futex){(uint32_t *)a, (int)b, (int)c, d, e, (int)f});
}
