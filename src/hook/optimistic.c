/*
 * Calls that are expected not to wait, and are made as they are.
 *
 * A pipe is tried by preadv2 with RWF_NOWAIT, which costs 110 ns more than read(2); O_NONBLOCK is
 * not the hook's to set (children share the pipe, stdio reads it). accept, terminals and devices
 * ask poll(2). So a number whose last HOT_AFTER tries have all found something is HOT: called as it
 * is. What open(2) gave is HOT at once; a pipe whose ends are known needs no streak (fdhints.h).
 *
 * A HOT call that blocks after all holds its P for two looks of the monitor (40 us to 6 ms). The
 * cost is bounded:
 *
 *   - every HOT_CHECK-th call is a try, and a try that finds nothing ends HOT (hot_off);
 *   - so does a call whose P was taken, or during which the monitor has looked three times (60 us
 *     to 9 ms); either doubles the tries needed the next time. A pipe whose P was taken quadruples
 *     them for all pipes of the process: 32, 128, 512...;
 *   - while a thread sleeps in any call without its P, no call takes the chance: a thousand pipes
 *     that fall silent together cost one thread for each P;
 *   - where the monitor cannot take a P, nothing is HOT.
 *
 * Such a call has not set `used` (fdhints.h), so a close of its number does not know of it, and the
 * kernel keeps the file open while it sleeps. It must not sleep for long:
 *
 *   1  hot_call notes the call in its M, by two plain stores;
 *   2  the monitor signals a thread with a note whose CPU clock stands still (sysmon.c);
 *   3  the handler makes it EINTR where the kernel would repeat the call (preempt_mend_call);
 *   4  in another life of the number, the call ends with EBADF. With EINTR, if it was a handler's
 *      signal and the threads are goroutines (thread_call_ended). Else it goes on as a
 *      goroutine's, in its old life (read_resume, write_resume, accept_wait, connect_long): it
 *      sets `used`, compares the life once more (note_known), and from then on a close finds it.
 *
 * The note and a close need no order: the monitor looks for as long as the thread sleeps, which has
 * a P or is counted in sched.taken. A file that answers EINTR for ever (some servers of FUSE do) is
 * called unnoted the second time. connect and files with O_NONBLOCK, which another process may
 * clear, are called so too. Two goroutines on one pipe may miscount the hints, which is harmless.
 */
#include "hook/hook_internal.h"

#define MISTAKES_MOST 12 /* 16 million tries */
#define MISTAKES_FEW 3   /* the P was not taken: the machine was busy, perhaps */

#define LESSONS_MOST 6 /* 4^6 * HOT_AFTER */

/* atomic, a hint: how often a trusted pipe of the process waited */
static uint32_t hot_lessons;

NOINLINE void hot_on(int fd, int dir) {
    Hint *h = &fd_hints[fd];
    uint32_t doubt = load_rlx(&h->mistakes[dir]) + 2 * load_rlx(&hot_lessons);
    if (load_rlx(&h->streak[dir]) >> doubt < HOT_AFTER || !known.retakes) return;
    FdKind kind = kind_hint(fd, dir);
    if (kind == KIND_PIPE && dir == DIR_WRITE) flags_add(fd, HINT_ROOM);
    if (kind != KIND_PLAIN && !kind_is_counted(kind)) store_rlx(&h->kind[dir], KIND_HOT);
}

NOINLINE void hot_off(int fd, int dir) {
    if ((unsigned)fd >= FD_HINTS) return;
    Hint *h = &fd_hints[fd];
    store_rlx(&h->streak[dir], 0);
    if (dir == DIR_WRITE && (load_rlx(&h->flags) & HINT_ROOM)) flags_take(fd, HINT_ROOM);
    /* looked at again */
    if (load_rlx(&h->kind[dir]) == KIND_HOT) store_rlx(&h->kind[dir], KIND_UNKNOWN);
}

COLD void hot_slept(M *m, int fd, int dir) {
    bool taken = was_taken(m);
    Hint *h = &fd_hints[(unsigned)fd % FD_HINTS];
    if ((unsigned)fd < FD_HINTS &&
        load_rlx(&h->mistakes[dir]) < (taken ? MISTAKES_MOST : MISTAKES_FEW))
        store_rlx(&h->mistakes[dir], (uint8_t)(h->mistakes[dir] + 1));
    if (taken && !(flags_hint(fd) & HINT_OPENED) && load_rlx(&hot_lessons) < LESSONS_MOST)
        store_rlx(&hot_lessons, load_rlx(&hot_lessons) + 1);
    if (kind_is_counted(kind_hint(fd, dir))) kind_set(fd, dir, KIND_UNKNOWN); /* miscounted */
    hot_off(fd, dir);
    flags_take(fd, HINT_OPENED | HINT_NONBLOCK);
    if (taken) core_pass();
}
