/*
 * Pipes that never make anybody wait.
 *
 * A pipe, or an eventfd, is tried by preadv2 with RWF_NOWAIT. That costs the kernel 110 ns more
 * than read(2), which has no such flag (O_NONBLOCK has other owners: children share the pipe, stdio
 * reads it). So one whose last HOT_AFTER tries have all found something is called by read(2)
 * itself; and so is what open(2) gave, from the start. Should that block after all, it blocks a
 * thread, for two looks of the monitor (40 us to 6 ms): see below. The monitor takes the P for
 * whoever waits for it, as with any call that nobody announced. What it may cost is kept small:
 *
 *   - every HOT_CHECK-th call is a try, and one that finds nothing ends it (hot_off);
 *   - so does one whose P was taken, or during which the monitor has looked three times (60 us to
 *     9 ms); either doubles the number of tries it needs the next time. A pipe whose P was taken
 *     quadruples it for all pipes of the process: 32, 128, 512...;
 *   - while a thread sleeps in such a call, or in any other without its P, no other call takes the
 *     chance: a thousand pipes that fall silent together cost one thread for each P;
 *   - where the monitor cannot take a P it is never done.
 *
 * accept() is the same with poll(2) as the try, and so are terminals and other devices: a socket
 * that is HOT is a listening one. A pipe both of whose ends are the hook's needs no streak
 * (fdhints.h).
 *
 * Nobody knows of such a call: it has not set `used` (fdhints.h), a close of its number takes the
 * plain way, and the kernel keeps the file open for as long as the call sleeps. So it must not
 * sleep for long:
 *
 *   1  the call is noted in its M (hot_call), by two plain stores;
 *   2  the monitor finds the note, and the thread's CPU clock where it was at the last look: it
 *      signals the thread (sysmon.c);
 *   3  the handler ends the system call with EINTR, where the kernel would make it again
 *      (preempt_mend_call);
 *   4  the number has another life: EBADF. Else the call goes on as a goroutine's, in the life that
 *      it has begun in (read_resume, write_resume, accept_wait, connect_long): it sets `used` and compares
 *      the life once more (note_known), and from then on a close finds it.
 *
 * A close before 4 is seen there, a close after it wakes the goroutine. Nothing here depends on the
 * order in which the note and a close become visible: the monitor looks again for as long as the
 * thread sleeps. While it does, it is not asleep itself: the thread has a P, or its P was taken
 * (sched.taken). A file that answers EINTR for ever (some servers of FUSE do) is called unnoted the
 * second time.
 *
 * The same holds for whatever else is made as it is because it is not expected to wait: connect,
 * and files with O_NONBLOCK, which another process may have taken back.
 *
 * The hints are plain loads and stores: two goroutines on one pipe miscount, and nothing depends on
 * it.
 */
#include "hook/hook_internal.h"

#define MISTAKES_MOST 12 /* 16 million tries */
#define MISTAKES_FEW 3   /* where nobody missed the P: it may have been a busy machine */

#define LESSONS_MOST 6 /* 4^6 * HOT_AFTER */

static uint32_t
    hot_lessons; /* atomic, a hint: how often a pipe, any of them, was trusted and waited */

NOINLINE void hot_on(int fd, int dir) {
    Hint *h = &fd_hints[fd];
    uint32_t doubt = load_rlx(&h->mistakes[dir]) + 2 * load_rlx(&hot_lessons);
    if (load_rlx(&h->streak[dir]) >> doubt < HOT_AFTER || !known.retakes) return;
    uint8_t kind = load_rlx(&h->kind[dir]);
    if (kind == KIND_PIPE && dir == DIR_WRITE) flags_add(fd, HINT_ROOM);
    if (kind != KIND_PLAIN && kind < KIND_PIPE) store_rlx(&h->kind[dir], KIND_HOT);
}

/* Also for a NOWAIT that has found nothing. */
NOINLINE void hot_off(int fd, int dir) {
    if ((unsigned)fd >= FD_HINTS) return;
    Hint *h = &fd_hints[fd];
    store_rlx(&h->streak[dir], 0);
    if (dir == DIR_WRITE && (load_rlx(&h->flags) & HINT_ROOM)) flags_take(fd, HINT_ROOM);
    /* looked at again */
    if (load_rlx(&h->kind[dir]) == KIND_HOT) store_rlx(&h->kind[dir], KIND_UNKNOWN);
}

COLD void hot_slept(M *m, int fd, int dir) {
    bool taken = load_rlx(&m->attn) & ATTN_TAKEN;
    Hint *h = &fd_hints[(unsigned)fd % FD_HINTS];
    bool paired = kind_hint(fd, dir) >= KIND_PIPE;
    if ((unsigned)fd < FD_HINTS &&
        load_rlx(&h->mistakes[dir]) < (taken ? MISTAKES_MOST : MISTAKES_FEW))
        store_rlx(&h->mistakes[dir], (uint8_t)(h->mistakes[dir] + 1));
    if (taken && !(flags_hint(fd) & HINT_OPENED) && load_rlx(&hot_lessons) < LESSONS_MOST)
        store_rlx(&hot_lessons, load_rlx(&hot_lessons) + 1);
    if (paired) kind_set(fd, dir, KIND_UNKNOWN); /* not all comes by way of us */
    hot_off(fd, dir);
    flags_take(fd, HINT_OPENED | HINT_NONBLOCK);
    if (taken) core_pass();
}
