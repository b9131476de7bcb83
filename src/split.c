/*
 * Segments: a goroutine's stack grows without moving.
 *
 * Code built with -fsplit-stack begins every function with
 *
 *         cmp  %fs:0x70, %rsp          (or: lea -frame(%rsp), %r11; cmp %fs:0x70, %r11)
 *         jb   slow
 *     ...
 *     slow:
 *         mov  $frame, %r10d
 *         mov  $bytes of stack arguments, %r11d
 *         call __morestack
 *         ret
 *         jmp  (back to the function)
 *
 * __morestack (split/morestack.S) saves the registers that hold arguments, asks gort_split_grow
 * for a place, calls what comes behind the `ret` there, and when that returns tells
 * gort_split_shrink, goes back to the old stack and returns onto the `ret`.
 *
 * Why a check fails, in the order they are looked at:
 *   1. The thread runs no goroutine, or one that is on a stack of its own making (a signal's
 *      alternate stack, a context): it goes on in place, unchecked, as ordinary code would.
 *   2. The guard is poison: the monitor wants the processor (preempt.c). The thread stops here, in
 *      the prologue, like one stopped by a signal: it keeps its goroutine, so thread-locals and
 *      thread-level locks of the program stay valid over every call it makes.
 *   3. The guard is that of a segment which a longjmp or an exception has left: the ones above the
 *      stack pointer are given back (settle). That it fails then is the order of addresses in
 *      slots.c.
 *   4. There is no room: a segment at least twice as large as the current one.
 * After 1 to 3 the function goes on in place.
 *
 * Which segment is the current one is decided by the stack pointer (slot_at); the chain in the
 * Stack record is needed to give them back. A segment that is left goes to the thread's cache, one
 * per size up to 1 MB, so that a call in a loop across the boundary costs no more than two calls of
 * this file. Of larger ones the goroutine keeps the last, until it shrinks further.
 *
 * No lock: the record belongs to the goroutine, the cache to its thread. A signal handler of the
 * program that interrupts this runs on the alternate stack, case 1, and touches nothing. The runtime's
 * own stops the thread, and nobody else runs on it meanwhile.
 *
 * This file is compiled without vector registers: they hold arguments and results. What needs more
 * (memory, sleep, reports) goes through slow(), which saves them all and runs on g0's stack.
 */
#include "split.h"
#include "split_abi.h"
#include "split_slow.h"

struct Split split;

#define MAGIC 0x7365676du

/* ---- the guard ------------------------------------------------------------------------------ */

static size_t lazy_reserve(Stack *s) {
    size_t span = stack_span(s);
    return span >= 2 * RESERVE_LIBC ? RESERVE_LIBC : span / 2;
}

/* Lowest byte and guard of the segment that holds sp; 0: it is none of gp's. */
static uintptr_t segment_at(G *gp, uintptr_t sp, int *cls, uintptr_t *guard) {
    uintptr_t lo = slot_at(sp, cls);
    if (lo) {
        *guard = lo + split.reserve;
        return lo;
    }
    Stack *s = gp->stack;
    lo = (uintptr_t)s->lo;
    if (sp <= lo || sp > (uintptr_t)s) return 0;
    *guard = lo + lazy_reserve(s);
    *cls = slot_class(stack_span(s));
    return lo;
}

NOINLINE void split_resume(G *gp) {
    int cls;
    uintptr_t guard = 0;
    if (gp->stack) segment_at(gp, arch_sp(), &cls, &guard);
    arch_guard_set(guard);
}

/* ---- the chain ------------------------------------------------------------------------------ */

static uintptr_t segment_lo(Segment *seg) { return (uintptr_t)(seg + 1) - slot_size((int)seg->cls); }

static uintptr_t top_lo(Stack *s) { return s->seg ? segment_lo(s->seg) : (uintptr_t)s->lo; }

static void push(M *m, Stack *s, Segment *seg) {
    seg->prev = s->seg;
    s->seg = seg;
    s->grown += slot_size((int)seg->cls);
    m->segments++;
}

static void pop(M *m, Stack *s) {
    Segment *seg = s->seg;
    if (unlikely(seg->magic != MAGIC)) slow(m, SLOW_BROKEN, s, 0);
    s->seg = seg->prev;
    s->grown -= slot_size((int)seg->cls);
    m->segments--;
    if (unlikely(s->blocks != NULL)) slow(m, SLOW_BLOCKS, s, segment_lo(seg));
    if (likely(seg->cls <= SLOT_SMALL && m->segs[seg->cls] == NULL)) m->segs[seg->cls] = seg;
    else slow(m, SLOW_GIVE, s, (uintptr_t)seg);
    if (unlikely(s->kept != NULL) && s->kept != seg) slow(m, SLOW_UNKEEP, s, 0);
}

/* Gives back what lies above the segment at lo. False: that one is not in the chain. */
static bool settle(M *m, Stack *s, uintptr_t lo) {
    Segment *seg = s->seg;
    while (seg && segment_lo(seg) != lo) seg = seg->prev;
    if (seg == NULL && (uintptr_t)s->lo != lo) return false;
    while (s->seg != seg) pop(m, s);
    return true;
}

/* A free segment of at least the class; NULL: the limit, or no memory: never comes back then. */
static Segment *take(M *m, Stack *s, int cls) {
    if (likely(cls >= 0 && cls <= SLOT_SMALL && m->segs[cls] != NULL &&
               s->grown + slot_size(cls) <= settings.maxstack)) {
        Segment *seg = m->segs[cls];
        m->segs[cls] = NULL;
        return seg;
    }
    Segment *kept = s->kept;
    if (kept && (int)kept->cls == cls) {
        s->kept = NULL;
        return kept;
    }
    Segment *seg = (Segment *)slow(m, SLOW_TAKE, s, (uintptr_t)cls);
    seg->cls = (uint32_t)cls;
    seg->magic = MAGIC;
    return seg;
}

/* ---- growing and shrinking ------------------------------------------------------------------ */

#define ROUND16(n) (((n) + 15) & ~(size_t)15)

/* fp is __morestack's frame pointer: [0] the caller's, [1] return onto the `ret`, [2] the
 * function's return address, [3]... its stack arguments; [-1]...[-7] saved registers, [-8] what
 * gort_split_shrink gets, 0: nothing was grown; [-9] free. */
static uintptr_t with_arguments(uintptr_t top, const uintptr_t *fp, size_t bytes) {
    uintptr_t *to = (uintptr_t *)((top & ~(uintptr_t)15) - ROUND16(bytes));
    for (size_t i = 0; i < bytes / 8; i++) to[i] = fp[3 + i];
    return (uintptr_t)to;
}

static uintptr_t in_place(const uintptr_t *fp, size_t bytes) {
    return with_arguments((uintptr_t)(fp - 9), fp, bytes);
}

static uintptr_t grow(M *m, Stack *s, uintptr_t *fp, int cls, size_t need, size_t bytes) {
    int least = slot_class(need + bytes + split.reserve + sizeof(Segment) + 16);
    Segment *seg = take(m, s, least < 0 || least > cls ? least : cls + 1);
    push(m, s, seg);
    fp[-8] = (uintptr_t)seg;
    arch_guard_set(segment_lo(seg) + split.reserve);
    return with_arguments((uintptr_t)seg, fp, bytes);
}

/* The new stack pointer. `frame`: what the function needs, `libc`: what code it calls needs that has
 * no checks. On the goroutine's stack, below its guard. */
EXPORT uintptr_t gort_split_grow(size_t frame, size_t bytes, uintptr_t *fp, size_t libc) {
    uintptr_t sp = (uintptr_t)(fp + 2), guard;
    int cls;
    fp[-8] = 0;
    M *m = getm();
    if (m == NULL || m->plain || m->curg == NULL || m->curg->stack == NULL) return in_place(fp, bytes);
    G *gp = m->curg;
    Stack *s = gp->stack;
    uintptr_t lo = segment_at(gp, sp, &cls, &guard);
    if (unlikely(lo == 0)) return in_place(fp, bytes);
    if (unlikely(lo != top_lo(s)) && !settle(m, s, lo)) return in_place(fp, bytes);
    if (unlikely(load_rlx(&m->attn) != 0) && m->locks == 0) {
        m->call[0] = fp[1];
        m->call[1] = (uintptr_t)(fp + 2);
        m->call[2] = fp[0];
        slow(m, SLOW_PREEMPT, s, 0);
    }
    bool fits = libc ? sp - lo >= frame + bytes + libc : sp >= guard + (frame < RESERVE_FRAME ? 0 : frame);
    if (!fits) return grow(m, s, fp, cls, frame + libc, bytes);
    arch_guard_set(guard);
    return in_place(fp, bytes);
}

/* The function has returned; the caller is back on the stack it came from. */
EXPORT void gort_split_shrink(Segment *seg) {
    M *m = getm();
    G *gp = m->curg;
    Stack *s = gp->stack;
    int cls;
    uintptr_t guard = 0;
    bool there = false;
    for (Segment *at = s->seg; at && !there; at = at->prev) there = at == seg;
    while (there && s->seg != seg) pop(m, s);
    if (there) pop(m, s);
    segment_at(gp, arch_sp(), &cls, &guard);
    arch_guard_set(load_rlx(&m->attn) & ATTN_PREEMPT ? GUARD_POISON : guard);
}

/* ---- arrays of a size known at run time ------------------------------------------------------- */

/* n bytes that did not fit above the guard, for the function whose stack pointer is sp. Where they
 * fit after all (poison, a foreign stack), the stack pointer moves. Otherwise it moves by 16, as a
 * mark: an array lives as long as the stack pointer is below the place it was made at. */
EXPORT Space gort_split_space(size_t n, uintptr_t sp) {
    M *m = getm();
    uintptr_t guard, lo = 0;
    int cls;
    n = ROUND16(n);
    if (m && !m->plain && m->curg && m->curg->stack) lo = segment_at(m->curg, sp, &cls, &guard);
    if (lo == 0 || (n < sp && sp - n >= guard)) return (Space){sp - n, n};
    Stack *s = m->curg->stack;
    if (lo != top_lo(s)) settle(m, s, lo);
    if (s->blocks) slow(m, SLOW_DEAD_BLOCKS, s, sp);
    Segment *b = (Segment *)slow(m, SLOW_SPACE, s, n);
    b->magic = MAGIC;
    b->tag = sp;
    b->prev = s->blocks;
    s->blocks = b;
    bool room = sp - 16 >= guard - RESERVE_FRAME - RESERVE_SLACK;
    return (Space){segment_lo(b), room ? 16 : 0};
}
