/* The slow half of split.c: memory, the limit, the monitor's request, and a program's mode. What
 * split_slow() runs is on g0's stack, with the vector registers saved, in a section. */
#include "mem/split/split_slow.h"
#include "base/fatal.h"
#include "base/upstairs.h"
#include "base/san.h"
#include "mem/split/split_abi.h"
#include "base/sysfault.h"
#include "unwind/unwind.h"

#include <signal.h>

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct SplitJob {
    M *m;
    Stack *s;
    uintptr_t with, result;
    int what;
} SplitJob;

static void segment_free(Segment *seg) {
    seg->magic = 0;
    void *slot = (void *)seg->lo;
    slot_free((int)seg->cls, &slot, 1);
}

/* Ends like a fault in the guard of a lazy stack: one line, the dump, SIGSEGV. */
static NORETURN void split_overflow(M *m, Stack *s, const char *why) {
    struct sigaction sa = {.sa_handler = SIG_DFL};
    size_t bytes = s->custom == STACK_COMPACT ? SLOT_BASE : stack_span(s);
    for (Segment *seg = s->seg; seg; seg = seg->prev) bytes += slot_size((int)seg->cls);
    fatal_report(0, "goroutine %lu: stack overflow (%lu KB, %s)", m->curg->id, bytes >> 10, why);
    sigaction(SIGSEGV, &sa, NULL);
    os_tgkill(os_gettid(), SIGSEGV);
    for (;;) os_nap(GORT_SEC);
}

static Segment *segment_new(M *m, Stack *s, int cls) {
    if (cls < 0) split_overflow(m, s, "GORT_DEBUG=maxstack= sets the limit");
    void *slot;
    if (slot_alloc(cls, &slot, 1) == 0) split_overflow(m, s, "no address space for more");
    Segment *seg = (Segment *)((char *)slot + slot_size(cls)) - 1;
    seg->cls = (uint32_t)cls;
    seg->lo = (uintptr_t)slot;
    return seg;
}

static int class_of_block(size_t bytes) {
    return bytes > settings.maxstack ? -1 : slot_class(bytes + sizeof(Segment));
}

static void segment_drop(Segment **at) {
    if (*at) segment_free(*at);
    *at = NULL;
}

static void segment_give(Stack *s, Segment *seg) {
    if (seg->cls <= SLOT_SMALL) {
        segment_free(seg);
        return;
    }
    segment_drop(&s->kept);
    s->kept = seg;
}

/* Frees the blocks whose tag is in [lo, hi). */
static void free_blocks(Stack *s, uintptr_t lo, uintptr_t hi) {
    for (Segment **at = &s->blocks; *at;) {
        Segment *b = *at;
        if (b->tag < lo || b->tag >= hi) {
            at = &b->prev;
            continue;
        }
        *at = b->prev;
        segment_free(b);
    }
}

static void free_dead_blocks(Stack *s, uintptr_t sp) {
    int cls;
    uintptr_t lo = slot_at(sp, &cls);
    free_blocks(s, lo ? lo : (uintptr_t)s->lo, sp + 1);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static long split_job(void *arg) {
    SplitJob *j = arg;
    switch (j->what) {
    case SLOW_TAKE: j->result = (uintptr_t)segment_new(j->m, j->s, (int)j->with); break;
    case SLOW_GIVE: segment_give(j->s, (Segment *)j->with); break;
    case SLOW_UNKEEP: segment_drop(&j->s->kept); break;
    case SLOW_SPACE: j->result = (uintptr_t)segment_new(j->m, j->s, class_of_block(j->with)); break;
    case SLOW_BLOCKS: free_dead_blocks(j->s, j->with); break;
    case SLOW_BELOW:
        split_overflow(j->m, j->s,
                       "beyond its end: arguments by value that no check counts, see "
                       "-maccumulate-outgoing-args, or unchecked code called by a pointer");
    case SLOW_PREEMPT: upstairs.in_prologue(j->m); break;
    default: fatal("the record of a stack segment was overwritten");
    }
    return 0;
}

uintptr_t split_slow(M *m, int what, Stack *s, uintptr_t with) {
    SplitJob j = {.m = m, .s = s, .with = with, .what = what};
    uint32_t before = m->locks;
    m->locks = before + 1;
    fence_compiler();
#if ARCH_SPLITS
    arch_call_saving(m->g0sp, split_job, &j);
#else
    split_job(&j);
#endif
    fence_compiler();
    /* as leave() does; the next call finds a request that comes now */
    store_rel(&m->locks, before);
    return j.result;
}

void split_release(M *m, Stack *s) {
    while (s->seg) {
        Segment *seg = s->seg;
        s->seg = seg->prev;
        m->segments--;
        segment_free(seg);
    }
    segment_drop(&s->kept);
    free_blocks(s, 0, UINTPTR_MAX);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The guard lies in the thread's control block: the monitor must not write to a dead one. */
static Lock poison_lock;

void split_thread_begin(M *m) { m->guard_at = arch_guard_at(); }

void split_thread_end(M *m) {
    lock(&poison_lock, RANK_LEAF);
    m->guard_at = NULL;
    unlock(&poison_lock);
    arch_guard_set(0);
    segment_drop(&m->hot);
    for (int cls = 0; cls <= SLOT_SMALL; cls++) segment_drop(&m->segs[cls]);
}

void split_poison(M *m) {
    if (split.mode == SPLIT_OFF) return;
    lock(&poison_lock, RANK_LEAF);
    if (m->guard_at) store_rlx(m->guard_at, GUARD_POISON);
    unlock(&poison_lock);
}

uint64_t split_segments(void) {
    int64_t n = 0;
    for (M *m = load_acq(&sched.all_ms); m; m = m->all) n += load_rlx(&m->segments);
    return n > 0 ? (uint64_t)n : 0;
}

/* ---- which mode ------------------------------------------------------------------------------ */

/* Recognises the prologues of the compiler, and what gold and lld make of them. */
static bool checks_stack(const unsigned char *code) {
    static const unsigned char endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
    static const unsigned char small[] = {0x64, 0x48, 0x3b, 0x24, 0x25, 0x70, 0, 0, 0};
    static const unsigned char always[] = {0xf9, 0x0f, 0x1f, 0x84};
    static const unsigned char lea[] = {0x4c, 0x8d, 0x9c, 0x24};
    static const unsigned char large[] = {0x64, 0x4c, 0x3b, 0x1c, 0x25, 0x70, 0, 0, 0};
    if (memcmp(code, endbr, sizeof endbr) == 0) code += sizeof endbr;
    if (memcmp(code, small, sizeof small) == 0 || memcmp(code, always, sizeof always) == 0)
        return true;
    return memcmp(code, lea, sizeof lea) == 0 && memcmp(code + 8, large, sizeof large) == 0;
}

bool split_starts(gort_fn *fn, const void *copy) {
    if (fn == upstairs.wg_member || fn == upstairs.group_member) {
        if (copy == NULL) return false;
        fn = ((gort_fn *const *)copy)[1];
    }
    return checks_stack((const unsigned char *)fn);
}

/* Called before main. `probe` is a function with a check that calls one without. */
EXPORT void gort_split_linked(const void *morestack, const void *end, const void *probe) {
    split.linked = 1;
    split.code_lo = (uintptr_t)morestack;
    split.code_hi = (uintptr_t)end;
    /* stc: the linker has made it call __morestack_non_split always */
    split.rewritten = *(const unsigned char *)probe == 0xf9;
}

/* A handler needs more than a compact stack has (program/signals.c). */
static void handlers_on_alt_stack(void) {
    struct sigaction sa;
    for (int signo = 1; signo < NSIG; signo++) {
        if (sigaction(signo, NULL, &sa) != 0 || (sa.sa_flags & SA_ONSTACK)) continue;
        if (sa.sa_handler == SIG_DFL || sa.sa_handler == SIG_IGN) continue;
        sa.sa_flags |= SA_ONSTACK;
        sigaction(signo, &sa, NULL);
    }
}

static long with_room(M *m, long (*fn)(void *), void *arg) { return call_with_room(m, fn, arg); }

void split_begin(void) {
    /* Sanitizers, valgrind and a collector must know every stack; injected faults need room. */
    if (!ARCH_SPLITS || !split.linked || san_on() || valgrind_runs() || collect_on || sysfault_on)
        return;
    if (!slots_reserve()) return; /* lazy stacks of fixed size, as without it */
    split.mode = split.rewritten ? SPLIT_TRUE : SPLIT_HYBRID;
    unwind_segments = true;
    if (split.mode == SPLIT_TRUE) {
        handlers_on_alt_stack();
        upstairs.with_room = with_room;
    }
    split.reserve = split.rewritten ? RESERVE_TRUE : RESERVE_LIBC;
}
