/*
 * Segments: a goroutine's stack grows without moving.
 *
 * Code built with -fsplit-stack begins every function with
 *
 *           cmp %fs:0x70, %rsp; jb slow          (or: lea -frame(%rsp), %r11; cmp %fs:0x70, %r11)
 *     slow: mov $frame, %r10d; mov $bytes of stack arguments, %r11d
 *           call __morestack; ret; jmp (back to the function)
 *
 * __morestack (program/morestack.S) saves the registers that hold arguments, asks gort_split_grow
 * for a stack pointer and calls the code behind the `ret` there. When that returns, it calls
 * gort_split_shrink, goes back to the old stack and returns onto the `ret`.
 *
 * A check fails for one of these reasons, examined in this order:
 *   1. The thread runs no goroutine, or its goroutine is on a foreign stack (a signal's alternate
 *      stack, a context of the program's): the function goes on in place, unchecked.
 *   2. A longjmp or an exception has left the segment that the guard belongs to (compact_mem.c):
 *      the segments above the stack pointer are given back (segment_settle).
 *   3. The guard is poison: the monitor wants the processor (preempt.c). The thread stops in the
 *      prologue and keeps its goroutine, as in a signal handler, so thread-locals and thread-level
 *      locks of the program stay valid over every call.
 *   4. There is no room: the goroutine gets a segment at least twice as large as the current one.
 * After 2 and 3 the function goes on in place if it fits.
 *
 * The stack pointer tells which segment is the current one (slot_at); the chain in the Stack record
 * serves to give segments back. The thread keeps the segment that was left last as `hot`, for a
 * loop that crosses the boundary again at the same stack pointer, and behind it one of each size up
 * to 1 MB. Of larger ones the goroutine keeps the last until it shrinks further.
 *
 * There is no lock: the record belongs to the goroutine, the cache to its thread. A handler of the
 * program's runs on the alternate stack, case 1; the runtime's own stops the thread. This file is
 * compiled without vector registers, which hold arguments and results. Work that needs more
 * (memory, sleep, reports) goes through split_slow(), which saves them and runs on g0's stack.
 */
#include "mem/split/split.h"
#include "mem/split/split_abi.h"
#include "mem/split/split_slow.h"

struct Split split;

#define SEGMENT_MAGIC 0x7365676du

/* ---- the guard ------------------------------------------------------------------------------ */

static size_t lazy_reserve(Stack *s) {
    size_t span = stack_span(s);
    return span >= 2 * RESERVE_LIBC ? RESERVE_LIBC : span / 2;
}

static uintptr_t guard_of_first(Stack *s) {
    return (uintptr_t)s->lo +
           (likely(s->custom == STACK_COMPACT) ? split.reserve : lazy_reserve(s));
}

static uintptr_t guard_of_top(Stack *s) {
    return s->seg ? s->seg->lo + split.reserve : guard_of_first(s);
}

NOINLINE void split_resume(G *gp) {
    int cls;
    /* most goroutines wait on a compact stack: this touches no memory */
    uintptr_t lo = slot_at(arch_sp(), &cls);
    arch_guard_set(lo ? lo + split.reserve : gp->stack ? guard_of_first(gp->stack) : 0);
}

/* ---- the chain ------------------------------------------------------------------------------ */

static uintptr_t top_lo(Stack *s) { return s->seg ? s->seg->lo : (uintptr_t)s->lo; }
static uintptr_t top_hi(Stack *s) { return s->seg ? (uintptr_t)s->seg : (uintptr_t)s; }

/* sp is on the newest segment, or on the first stack if there is none. */
static bool on_top(Stack *s, uintptr_t sp) { return sp - top_lo(s) <= top_hi(s) - top_lo(s); }

/* To the thread's cache if there is a place, else away. */
static NOINLINE void segment_put_aside(M *m, Stack *s, Segment *seg) {
    if (seg->cls <= SLOT_SMALL && m->segs[seg->cls] == NULL) m->segs[seg->cls] = seg;
    else split_slow(m, SLOW_GIVE, s, (uintptr_t)seg);
}

static NOINLINE void segment_pop(M *m, Stack *s) {
    Segment *seg = s->seg;
    if (seg->magic != SEGMENT_MAGIC) split_slow(m, SLOW_BROKEN, s, 0);
    s->seg = seg->prev;
    m->segments--;
    if (s->blocks) split_slow(m, SLOW_BLOCKS, s, (uintptr_t)seg);
    if (s->kept) split_slow(m, SLOW_UNKEEP, s, 0);
    if (m->hot) segment_put_aside(m, s, m->hot);
    m->hot = NULL;
    if (seg->cls <= SLOT_SMALL) m->hot = seg;
    else segment_put_aside(m, s, seg);
}

/* Gives back segments left without a return. False: sp is on no stack of the goroutine's. */
static NOINLINE bool segment_settle(M *m, Stack *s, uintptr_t sp) {
    Segment *seg = s->seg;
    while (seg && sp - seg->lo > (uintptr_t)seg - seg->lo) seg = seg->prev;
    if (seg == NULL && sp - (uintptr_t)s->lo > stack_span(s)) return false;
    while (s->seg != seg) segment_pop(m, s);
    return true;
}

static bool within_limit(Stack *s, int cls) {
    size_t sum = slot_size(cls);
    for (Segment *seg = s->seg; seg; seg = seg->prev) sum += slot_size((int)seg->cls);
    return sum <= settings.maxstack;
}

/* A free segment of the class. At the limit, or without memory, it does not return. */
static Segment *segment_take(M *m, Stack *s, int cls) {
    Segment **from = NULL;
    if (cls >= 0 && within_limit(s, cls)) {
        if (m->hot && (int)m->hot->cls == cls) from = &m->hot;
        else if (cls <= SLOT_SMALL && m->segs[cls]) from = &m->segs[cls];
        else if (s->kept && (int)s->kept->cls == cls) from = &s->kept;
    } else {
        cls = -1;
    }
    if (from == NULL) return (Segment *)split_slow(m, SLOW_TAKE, s, (uintptr_t)cls);
    Segment *seg = *from;
    *from = NULL;
    return seg;
}

/* ---- growing and shrinking ------------------------------------------------------------------ */

#define ROUND16(n) (((n) + 15) & ~(size_t)15)

/* fp is __morestack's frame pointer; morestack.S draws the frame, fp[-8] is the segment's place. */
static uintptr_t with_arguments(uintptr_t top, const uintptr_t *fp, size_t bytes) {
    if (likely(bytes == 0)) return top & ~(uintptr_t)15;
    uintptr_t *to = (uintptr_t *)((top & ~(uintptr_t)15) - ROUND16(bytes));
    for (size_t i = 0; i < bytes / 8; i++) to[i] = fp[3 + i];
    return (uintptr_t)to;
}

/* In place. 0: __morestack copies the arguments below its frame, where our frame stands now. */
static uintptr_t in_place(const uintptr_t *fp, size_t bytes) {
    return bytes == 0 ? (uintptr_t)(fp - 9) & ~(uintptr_t)15 : 0;
}

static uintptr_t segment_grow(M *m, Stack *s, uintptr_t *fp, size_t need, size_t bytes) {
    int least = slot_class(need + bytes + split.reserve + sizeof(Segment) + 16);
    int cls = s->seg                       ? (int)s->seg->cls
              : s->custom == STACK_COMPACT ? 0
                                           : slot_class(stack_span(s));
    Segment *seg = segment_take(m, s, least < 0 || least > cls ? least : cls + 1);
    seg->prev = s->seg;
    seg->tag = (uintptr_t)(fp + 2);
    seg->below = guard_of_top(s);
    seg->room = slot_size((int)seg->cls) - split.reserve - sizeof(Segment) - 16;
    seg->magic = SEGMENT_MAGIC;
    s->seg = seg;
    m->segments++;
    fp[-8] = (uintptr_t)seg;
    arch_guard_set(seg->lo + split.reserve);
    return with_arguments((uintptr_t)seg, fp, bytes);
}

static NOINLINE void split_preempted(M *m, Stack *s, const uintptr_t *fp) {
    if (m->locks != 0) return;
    m->call[0] = fp[1];
    m->call[1] = (uintptr_t)(fp + 2);
    m->call[2] = fp[0];
    split_slow(m, SLOW_PREEMPT, s, 0);
}

static NOINLINE uintptr_t split_grow_slow(size_t frame, size_t bytes, uintptr_t *fp, size_t libc) {
    uintptr_t sp = (uintptr_t)(fp + 2);
    M *m = getm();
    Stack *s;
    fp[-8] = 0;
    if (m == NULL || m->curg == NULL || (s = m->curg->stack) == NULL) return in_place(fp, bytes);
    if (!on_top(s, sp) && !segment_settle(m, s, sp)) {
        int cls;
        /* on a neighbour's stack: does not return */
        if (slot_at(sp, &cls) != 0) split_slow(m, SLOW_BELOW, s, 0);
        return in_place(fp, bytes);
    }
    if (load_rlx(&m->attn) != 0) split_preempted(m, s, fp);
    uintptr_t lo = top_lo(s), guard = guard_of_top(s);
    bool fits =
        libc ? sp - lo >= frame + bytes + libc : sp >= guard + (frame < RESERVE_FRAME ? 0 : frame);
    if (!fits) return segment_grow(m, s, fp, frame + libc, bytes);
    arch_guard_set(guard);
    return in_place(fp, bytes);
}

/* The new stack pointer. The function needs `frame`, unchecked code that it calls `libc`. Below the
 * guard of the goroutine's stack. The fast path: the same place has just left this segment. */
EXPORT uintptr_t gort_split_grow(size_t frame, size_t bytes, uintptr_t *fp, size_t libc) {
    M *m = getm();
    Segment *hot;
    if (unlikely(m == NULL || (hot = m->hot) == NULL || hot->tag != (uintptr_t)(fp + 2) ||
                 bytes != 0 || frame + libc > hot->room || load_rlx(&m->attn) != 0))
        return split_grow_slow(frame, bytes, fp, libc);
    Stack *s = m->curg->stack;
    if (unlikely(s->seg != hot->prev || s->kept != NULL))
        return split_grow_slow(frame, bytes, fp, libc);
    m->hot = NULL;
    s->seg = hot;
    m->segments++;
    fp[-8] = (uintptr_t)hot;
    arch_guard_set(hot->lo + split.reserve);
    return (uintptr_t)hot;
}

static NOINLINE void split_shrink_slow(M *m, Stack *s, Segment *seg) {
    Segment *at = s->seg;
    while (at && at != seg) at = at->prev;
    while (at && s->seg != seg)
        segment_pop(m, s); /* left by a longjmp that stayed on this segment */
    if (at) segment_pop(m, s);
    arch_guard_set(load_rlx(&m->attn) & ATTN_PREEMPT ? GUARD_POISON : guard_of_top(s));
}

/* The function has returned, and __morestack is back on the stack it came from. */
EXPORT void gort_split_shrink(Segment *seg) {
    M *m = getm();
    Stack *s = m->curg->stack;
    if (unlikely(s->seg != seg || m->hot != NULL || s->blocks != NULL ||
                 seg->magic != SEGMENT_MAGIC || seg->cls > SLOT_SMALL || s->kept != NULL ||
                 load_rlx(&m->attn) != 0)) {
        split_shrink_slow(m, s, seg);
        return;
    }
    s->seg = seg->prev;
    m->hot = seg;
    m->segments--;
    arch_guard_set(seg->below);
}

/* ---- arrays of a size known at run time ------------------------------------------------------ */

#define OUTGOING 2048 /* arguments that the function may place below its array */

/* Space for n bytes that did not fit above the guard; sp is the caller's stack pointer. On a
 * foreign stack, which has no guard, sp moves by n. Else the array lives in a block and sp moves by
 * 16 as a mark: the array is dead once sp is back at or above the place where it was made. */
EXPORT Space gort_split_space(size_t n, uintptr_t sp) {
    M *m = getm();
    Stack *s = m && m->curg ? m->curg->stack : NULL;
    n = ROUND16(n);
    if (s == NULL || (!on_top(s, sp) && !segment_settle(m, s, sp)))
        return (Space){sp - n, n + OUTGOING};
    uintptr_t guard = guard_of_top(s);
    if (s->blocks) split_slow(m, SLOW_BLOCKS, s, sp);
    Segment *b = (Segment *)split_slow(m, SLOW_SPACE, s, n);
    bool room = sp - 16 >= guard - RESERVE_FRAME - RESERVE_SLACK;
    b->magic = SEGMENT_MAGIC;
    b->tag = room ? sp : sp + 8; /* without the mark, the array lives while sp is here */
    b->prev = s->blocks;
    s->blocks = b;
    return (Space){b->lo, room ? 16 : 0};
}
