/*
 * Stacks.
 *
 * C code holds pointers into its stack, so a stack never moves. Stacks are cut from slabs mapped
 * MAP_NORESERVE, and the kernel commits pages as they are touched: a stack grows without copying.
 * At this size nearly nine share one page of page tables, and a parked goroutine costs 4.6 KB.
 *
 *        slab   | guard | ............ stack 0 ............ rec | guard | ...... stack 1 ... rec |
 *                       ^lo                             top ^
 *
 * Guards. MADV_GUARD_INSTALL does not split the mapping, and process_madvise guards a batch in one
 * call. On older kernels mprotect is used up to a budget below vm.max_map_count. Beyond it a stack
 * has a canary word at its low end, checked when the goroutine ends. gort_stats says which.
 *
 * A frame larger than the guard that is not written from its top steps over it into the next stack;
 * code built with -fstack-clash-protection touches every page. Guards of a megabyte everywhere
 * would cost page tables: 6.6 KB instead of 4.6 per goroutine. So only the first slab, all that
 * most programs use, and custom stacks from 256 KB on have them, unless address space is limited. A
 * frame that steps further is found when a signal or a wait sees the other stack (stack_jumped).
 *
 * A free stack is in the cache of a P, warm and without a lock; in the common list, still with its
 * memory, last-in first-out; or a bit in its slab: its memory went back to the system, and the
 * record with it. The monitor moves from the list to the bits what was idle since it last looked
 * (the low-water mark): a steady load keeps its stacks, a peak is given back in seconds.
 *
 * Credits. A goroutine gets its stack when it first runs, too late to fail. gort_go takes a credit:
 *
 *     credits of Ps and Gs + places in the caches of the Ps = promised <= capacity
 *
 * where capacity counts the stacks that have address space. No P can use what another has cached: a
 * P keeps STACK_CACHE stacks if there is address space for as many more, else none (`tight`).
 */
#include "base/upstairs.h"
#include "mem/stack.h"
#include "base/san.h"
#include "base/warn.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define PAGE ((size_t)4096)
#define SLAB_MAX ((size_t)1 << 30)
#define SLAB_STACKS (SLAB_MAX / STACK_STRIDE)
#define SLAB_WIDE ((size_t)160 << 20)    /* the first one */
#define CUSTOM_LARGE ((size_t)256 << 10) /* custom stacks from this size on have a wide guard */
#define MAX_SLABS 4096
#define BATCH 32
#define MPROTECT_BUDGET 15000 /* each splits the mapping twice: below vm.max_map_count = 65530 */
#define CANARY 0x676f72742d656e64ULL
#define STACK_MAGIC 0x7374616b7265636fULL
#define MADV_GUARD_INSTALL_ 102
#define PIDFD_SELF_ (-10000)

enum { GUARD_UNKNOWN, GUARD_MADVISE, GUARD_MPROTECT, GUARD_CANARY };

typedef struct Slab {
    char *base;
    size_t stride, guard;
    uint32_t count; /* stacks in it */
    uint32_t fresh; /* never used from here on */
    uint32_t cold;  /* bits set */
    uint64_t cold_bits[(SLAB_STACKS + 63) / 64];
    uint64_t bare_bits[(SLAB_STACKS + 63) / 64]; /* has no guard, but a canary while in memory */
} Slab;

static struct {
    Lock lock;
    /* lock; nhot, low and bytes are read without: */
    Stack *hot;         /* the common list */
    uint64_t nhot, low; /* its length, and the least since the monitor last looked */
    Slab *slabs[MAX_SLABS];
    uint32_t nslabs;
    uint32_t search;     /* slabs below this one have nothing cold or fresh */
    uint64_t capacity;   /* stacks that have address space, */
    uint64_t bytes;      /*   and how much of it */
    uint64_t promised;   /* credits of Ps and Gs, and places in the caches of the Ps */
    bool tight;          /* the address space had no room for a slab of full size */
    int guard;           /* GUARD_...; read without the lock as a hint */
    uint32_t protected_; /* mprotect guards so far */
    bool vectors_fail;
    /* atomic: */
    uint64_t custom_bytes;
} stackpool;

/* ---- slabs ---------------------------------------------------------------------------------- */

static bool map_slab(Slab *slab, size_t size, size_t guard) {
    slab->base = os_map(size, true);
    if (slab->base == NULL) return false;
    os_no_huge(slab->base, size); /* a huge page would commit ten stacks at once */
    slab->guard = guard;
    slab->stride = STACK_USABLE + guard;
    slab->count = (uint32_t)(size / slab->stride);
    return true;
}

/* Maps a slab of up to SLAB_MAX bytes, less where the address space is limited. Under the lock. */
static bool add_slab(void) {
    if (stackpool.nslabs == MAX_SLABS) return false;
    Slab *slab = os_map(sizeof *slab, false);
    if (slab == NULL) return false;
    size_t guard = stackpool.nslabs > 0 || os_space_limited() ? GUARD_NEAR : GUARD_WIDE;
    for (size_t size = guard == GUARD_WIDE ? SLAB_WIDE : SLAB_MAX; size >= 4 * STACK_STRIDE;
         size /= 4, guard = GUARD_NEAR) {
        if (!map_slab(slab, size, guard)) {
            stackpool.tight = true;
            continue;
        }
        stackpool.slabs[stackpool.nslabs] = slab;
        store_rel(&stackpool.nslabs, stackpool.nslabs + 1); /* pairs with slab_of */
        stackpool.capacity += slab->count;
        stackpool.bytes += slab->count * slab->stride;
        return true;
    }
    os_unmap(slab, sizeof *slab);
    return false;
}

static Stack *record_at(Slab *slab, uint32_t i) {
    return (Stack *)(void *)(slab->base + (size_t)(i + 1) * slab->stride - sizeof(Stack));
}

void stack_record(Stack *s, char *lo, int kind) {
    *s = (Stack){.lo = lo, .custom = (uint16_t)kind, .magic = STACK_MAGIC};
}

static Stack *record_init(Slab *slab, uint32_t i) {
    Stack *s = record_at(slab, i);
    stack_record(s, slab->base + (size_t)i * slab->stride + slab->guard, STACK_SLAB);
    s->index = i;
    s->guard = slab->guard;
    return s;
}

/* Places without memory, taken under the lock and touched outside of it: a first touch is a page
 * fault, and other Ps would spin meanwhile. */
typedef struct Places {
    Slab *slab;
    uint32_t from, n;
    bool cold; /* a single used stack, which still has its guard */
} Places;

/* Under the lock. False: all places are in use. */
static bool take_places(uint32_t want, Places *at) {
    for (; stackpool.search < stackpool.nslabs; stackpool.search++) {
        Slab *slab = stackpool.slabs[stackpool.search];
        if (slab->cold > 0)
            for (uint32_t w = 0; w < count_of(slab->cold_bits); w++) {
                if (slab->cold_bits[w] == 0) continue;
                *at =
                    (Places){slab, w * 64 + (uint32_t)__builtin_ctzll(slab->cold_bits[w]), 1, true};
                slab->cold_bits[w] &= slab->cold_bits[w] - 1;
                slab->cold--;
                return true;
            }
        uint32_t left = slab->count - slab->fresh;
        if (left > 0) {
            *at = (Places){slab, slab->fresh, left < want ? left : want, false};
            slab->fresh += at->n;
            return true;
        }
    }
    return false;
}

/* ---- guards --------------------------------------------------------------------------------- */

static void set_canary(Stack *s) {
    s->canary = 1;
    *(uint64_t *)(void *)s->lo = CANARY;
}

/* Under the lock; the stack is not in use yet. */
static void guard_one(Slab *slab, Stack *s) {
    char *at = s->lo - s->guard;
    if (stackpool.guard == GUARD_UNKNOWN || stackpool.guard == GUARD_MADVISE) {
        if (os_guard_install(at, s->guard) == 0) {
            stackpool.guard = GUARD_MADVISE;
            return;
        }
        if (stackpool.guard == GUARD_UNKNOWN) stackpool.guard = GUARD_MPROTECT;
    }
    if (stackpool.protected_ < MPROTECT_BUDGET && os_protect_none(at, s->guard) == 0) {
        stackpool.protected_++;
        return;
    }
    if (stackpool.guard != GUARD_CANARY)
        warn_once(WARN_GUARD, "the kernel makes no guard region (before Linux 6.13: "
                              "vm.max_map_count is reached): an overflow of "
                              "some stacks is found by a canary, when their goroutine ends");
    stackpool.guard = GUARD_CANARY;
    uint64_t *word = &slab->bare_bits[s->index / 64];
    store_rlx(word, *word | 1ULL << s->index % 64);
    set_canary(s);
}

static void guard_batch(Slab *slab, Stack **s, uint32_t n) {
    if (n > 1 && load_rlx(&stackpool.guard) == GUARD_MADVISE &&
        !load_rlx(&stackpool.vectors_fail)) {
        struct iovec iov[BATCH];
        for (uint32_t i = 0; i < n; i++)
            iov[i] = (struct iovec){s[i]->lo - slab->guard, slab->guard};
        long done =
            os_sys(SYS_process_madvise, PIDFD_SELF_, (long)iov, n, MADV_GUARD_INSTALL_, 0, 0);
        if (done == (long)(n * slab->guard)) return;
        store_rlx(&stackpool.vectors_fail, true);
    }
    lock(&stackpool.lock, RANK_STACK);
    for (uint32_t i = 0; i < n; i++) guard_one(slab, s[i]);
    unlock(&stackpool.lock);
}

bool stack_guard_hit(Stack *s, uintptr_t addr) {
    uintptr_t lo = (uintptr_t)s->lo;
    if (s->custom == STACK_COMPACT) return false; /* its neighbour is there; split.c checks */
    return addr < lo && addr >= lo - s->guard;
}

bool stack_jumped(Stack *s, uintptr_t sp) {
    if (likely(sp - (uintptr_t)s->lo <= stack_span(s)) || s->custom == STACK_COMPACT || s->seg)
        return false;
    return stack_at(sp) != NULL;
}

const char *stack_advice(G *gp) {
    if (body_leads && gp->stack->custom == STACK_BODY)
        return gp->id == 1 ? "ulimit -s gives main's stack more"
                           : "pthread_attr_setstacksize gives a thread's stack more, or ulimit -s";
    if (gp->id == 1)
        return "the main goroutine's stack has this size always; gort_attr.stack_size gives "
               "another goroutine more";
    return "a larger gort_attr.stack_size gives it more";
}

void stack_jump_found(G *gp, uintptr_t sp) {
    if (!stack_jumped(gp->stack, sp)) return; /* a stack that the program made, or a segment */
    fatal("goroutine %lu: stack overflow (%lu KB): a frame has stepped over the guard, sp 0x%lx; "
          "build with -fstack-clash-protection; %s",
          gp->id, stack_span(gp->stack) >> 10, sp, stack_advice(gp));
}

void stack_check(Stack *s) {
    if (unlikely(s->magic != STACK_MAGIC)) fatal("the record of a stack was overwritten");
    if (unlikely(s->canary) && *(uint64_t *)(void *)s->lo != CANARY)
        fatal("stack overflow found by its canary");
}

/* ---- credits -------------------------------------------------------------------------------- */

static bool stack_promise(uint32_t n) {
    bool ok = true;
    lock(&stackpool.lock, RANK_STACK);
    while (ok && stackpool.promised + n > stackpool.capacity) ok = add_slab();
    if (ok) stackpool.promised += n;
    unlock(&stackpool.lock);
    return ok;
}

static void stack_unpromise(uint32_t n) {
    lock(&stackpool.lock, RANK_STACK);
    stackpool.promised -= n;
    unlock(&stackpool.lock);
}

bool stack_credit_fetch(M *m) {
    if (m->p == NULL || !stack_promise(BATCH)) return stack_promise(1);
    m->p->credits = BATCH - 1;
    return true;
}

void stack_credit_return(M *m) {
    if (m->p) m->p->credits -= CREDITS_PLENTY / 2 - 1;
    stack_unpromise(m->p ? CREDITS_PLENTY / 2 : 1);
}

/* ---- caches --------------------------------------------------------------------------------- */

/* Gives places their records and guards, in front of list. Cold memory took a canary with it. */
static Stack *furnish(const Places *at, Stack *list) {
    Stack *bare[BATCH];
    for (uint32_t i = 0; i < at->n; i++) {
        Stack *s = bare[i] = record_init(at->slab, at->from + i);
        if (!at->cold) valgrind_stack_register(s->lo, s + 1);
        s->next = list;
        list = s;
    }
    /* the caller owns the place, so its bit is stable; others in the same word may change */
    uint64_t *word = &at->slab->bare_bits[at->from / 64];
    if (!at->cold) guard_batch(at->slab, bare, at->n);
    else if (load_rlx(word) >> at->from % 64 & 1) set_canary(bare[0]);
    return list;
}

/* Under the lock: lets the P keep stacks if there is address space for them. */
static void let_keep(P *p) {
    if (p->stacks_most > 0 || stackpool.tight) return;
    while (stackpool.promised + STACK_CACHE > stackpool.capacity)
        if (!add_slab() || stackpool.tight) return;
    stackpool.promised += STACK_CACHE;
    p->stacks_most = STACK_CACHE;
}

/* Up to BATCH stacks, or one if p keeps none: from the common list, else without memory yet. */
static NOINLINE Stack *stack_take_common(P *p, uint32_t *got) {
    Stack *list = NULL;
    Places at = {0};
    *got = 0;
    lock(&stackpool.lock, RANK_STACK);
    let_keep(p);
    uint32_t want = p->stacks_most ? BATCH : 1;
    while (*got < want && stackpool.hot) {
        Stack *s = stackpool.hot;
        stackpool.hot = s->next;
        stackpool.nhot--;
        s->next = list;
        list = s;
        ++*got;
    }
    if (stackpool.nhot < stackpool.low) stackpool.low = stackpool.nhot;
    while (*got == 0 && !take_places(want, &at) && add_slab()) {}
    unlock(&stackpool.lock);
    if (at.n > 0) list = furnish(&at, list);
    *got += at.n;
    return list;
}

Stack *stack_get(M *m) {
    P *p = m->p;
    if (unlikely(p->stacks == NULL)) {
        uint32_t got;
        p->stacks = stack_take_common(p, &got);
        p->nstacks = got;
        if (p->stacks == NULL) fatal("no stack in spite of a credit");
    }
    Stack *s = p->stacks;
    p->stacks = s->next;
    p->nstacks--;
    return s;
}

static void stack_put_common(Stack *list, uint32_t n) {
    lock(&stackpool.lock, RANK_STACK);
    while (list) {
        Stack *s = list;
        list = s->next;
        s->next = stackpool.hot;
        stackpool.hot = s;
    }
    stackpool.nhot += n;
    unlock(&stackpool.lock);
}

/* The P keeps the warmer half of what it may; the rest goes to the common list. */
static NOINLINE void keep_half(P *p) {
    uint32_t n = p->stacks_most / 2, k = 0;
    Stack **end = &p->stacks;
    for (; k < n; k++) end = &(*end)->next;
    Stack *rest = *end;
    *end = NULL;
    stack_put_common(rest, p->nstacks - n);
    p->nstacks = n;
}

void stack_put(M *m, Stack *s) {
    P *p = m->p;
    stack_check(s);
    asan_forget(s->lo, stack_span(s));
    if (unlikely(p == NULL)) {
        s->next = NULL;
        stack_put_common(s, 1);
        return;
    }
    s->next = p->stacks;
    p->stacks = s;
    if (unlikely(++p->nstacks > p->stacks_most)) keep_half(p);
}

void stack_flush(P *p) {
    stack_put_common(p->stacks, p->nstacks);
    p->stacks = NULL;
    p->nstacks = 0;
    if (p->credits + p->stacks_most) stack_unpromise(p->credits + p->stacks_most);
    p->credits = p->stacks_most = 0;
}

/* TSan has no call for this, but forgets what libc's mmap replaces. */
void stack_forget_slow(Stack *s) {
    s->san_fiber = NULL;
    asan_forget(s->lo, stack_span(s));
    if (!tsan_on()) return;
    Stack keep = *s;
    size_t size = (size_t)((char *)(s + 1) - s->lo);
    mmap(s->lo, size, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED, -1, 0);
    *s = keep;
    if (s->canary) set_canary(s);
    s->san_fiber = __tsan_create_fiber(0);
}

/* ---- custom sizes --------------------------------------------------------------------------- */

static char *map_custom(size_t size, size_t guard) {
    char *base = os_map(guard + size, true);
    if (base == NULL) return NULL;
    os_no_huge(base, guard + size);
    if (os_guard_install(base, guard) == 0 || os_protect_none(base, guard) == 0) return base;
    os_unmap(base, guard + size);
    return NULL;
}

/* With the record and the colour. */
static size_t custom_whole(size_t size) { return ((size + PAGE - 1) & ~(PAGE - 1)) + PAGE; }
size_t stack_custom_span(size_t size) { return custom_whole(size) - sizeof(Stack); }

Stack *stack_custom(size_t size) {
    size_t guard = size >= CUSTOM_LARGE ? GUARD_WIDE : GUARD_NEAR;
    size = custom_whole(size);
    char *base = map_custom(size, guard);
    if (base == NULL) base = map_custom(size, guard = GUARD_NEAR);
    if (base == NULL) return NULL;
    Stack *s = (Stack *)(void *)(base + guard + size - sizeof *s);
    stack_record(s, base + guard, STACK_CUSTOM);
    s->size = guard + size;
    s->guard = guard;
    add_rlx(&stackpool.custom_bytes, s->size);
    valgrind_stack_register(s->lo, s + 1);
    return s;
}

void stack_custom_free(Stack *s) {
    stack_check(s);
    asan_forget(s->lo, stack_span(s));
    sub_rlx(&stackpool.custom_bytes, s->size);
    os_unmap(s->lo - s->guard, s->size);
}

/* ---- giving back ---------------------------------------------------------------------------- */

/* NULL: the address is in no slab. Takes no lock. */
static Slab *slab_of(uintptr_t addr) {
    uint32_t n = load_acq(&stackpool.nslabs); /* pairs with add_slab */
    for (uint32_t i = 0; i < n; i++) {
        Slab *slab = stackpool.slabs[i];
        if (addr - (uintptr_t)slab->base < slab->count * slab->stride) return slab;
    }
    return NULL;
}

/* Gives the memory of up to BATCH stacks back; they are on no list meanwhile. */
static void discard_batch(Stack **s, int n) {
    struct iovec iov[BATCH];
    for (int i = 0; i < n; i++) iov[i] = (struct iovec){s[i]->lo, STACK_USABLE};
    long done = os_sys(SYS_process_madvise, PIDFD_SELF_, (long)iov, n, MADV_DONTNEED, 0, 0);
    if (done == (long)((size_t)n * STACK_USABLE)) return;
    for (int i = 0; i < n; i++) os_discard(iov[i].iov_base, STACK_USABLE);
}

uint64_t stack_scavenge(void) {
    uint64_t spare = load_rlx(&stackpool.low);
    while (spare > 0) {
        Stack *batch[BATCH];
        Slab *slab[BATCH];
        uint32_t index[BATCH];
        int n = 0;
        lock(&stackpool.lock, RANK_STACK);
        while (n < BATCH && spare > 0 && stackpool.hot) {
            batch[n] = stackpool.hot;
            slab[n] = slab_of((uintptr_t)stackpool.hot);
            index[n] = stackpool.hot->index;
            stackpool.hot = stackpool.hot->next;
            stackpool.nhot--;
            spare--;
            n++;
        }
        unlock(&stackpool.lock);
        if (n == 0) break;
        discard_batch(batch, n);
        lock(&stackpool.lock, RANK_STACK);
        for (int i = 0; i < n; i++) {
            slab[i]->cold_bits[index[i] / 64] |= 1ULL << index[i] % 64;
            slab[i]->cold++;
        }
        stackpool.search = 0;
        unlock(&stackpool.lock);
    }
    lock(&stackpool.lock, RANK_STACK);
    uint64_t left = stackpool.low = stackpool.nhot;
    unlock(&stackpool.lock);
    return left;
}

Stack *stack_at(uintptr_t addr) {
    Slab *slab = slab_of(addr);
    if (slab == NULL) return NULL;
    return record_at(slab, (uint32_t)((addr - (uintptr_t)slab->base) / slab->stride));
}

uint64_t stack_reserved(void) {
    return load_rlx(&stackpool.bytes) + load_rlx(&stackpool.custom_bytes);
}

uint64_t stack_cached(void) {
    uint64_t n = load_rlx(&stackpool.nhot);
    for (uint32_t i = 0; i < load_rlx(&sched.procs); i++)
        if (sched.ps[i]) n += load_rlx(&sched.ps[i]->nstacks);
    return n * PAGE;
}

int stack_guard_kind(void) {
    return stackpool.guard == GUARD_UNKNOWN ? GUARD_MADVISE : stackpool.guard;
}
