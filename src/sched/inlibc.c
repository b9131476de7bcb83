/*
 * No goroutine is stopped for good inside libc.
 *
 * The preemption handler stops a goroutine anywhere, in malloc, in printf, in the loader, with the
 * lock that it holds there. For a slice that is fine. But one that stops for good (the runtime
 * ends), or for as long as the program likes (the world is stopped), would make the next printf
 * wait for ever. So it goes on until it has left libc:
 *
 *   1  The handler walks the stack of the goroutine to the outermost frame of libc, replaces the
 *      return address of that frame by a trap's, and returns. It runs on the goroutine's own
 *      thread, so the stack does not change meanwhile.
 *   2  libc goes on, releases what it holds, and returns into the trap.
 *   3  inlibc_left() does there what the handler would have done, then returns to the true address.
 *
 * It may stand on an alternate stack (a handler of the program interrupted libc) or a coroutine's:
 * the walk has bounds only where the stack is known, and goes through signal frames.
 *
 * A callback (of qsort, of pthread_once) runs on as part of libc's call. If it jumps or throws out
 * of libc, no trap is taken: the stopper asks again by signal (press in stopworld.c, on_its_way in
 * init.c), and the handler sees that the goroutine is out. A goroutine that is still inside after
 * PATIENCE signals is stopped there, with the lock that libc may hold (gort_go(3) says so).
 *
 * Where a function without an unwind table was interrupted (the _init of a library, which the
 * loader calls under its lock; assembler), the walk cannot tell. It counts as inside, without a
 * trap, until it has returned or called on, or for the PATIENCE.
 *
 * dlsym, dlopen and their kind read their own return address to learn the caller's namespace, and a
 * trap has none. They do so before they call another function: where such a function itself was
 * interrupted, no trap is set, and the stopper asks again.
 *
 * The rule is for libc, the loader and whatever may stand in for malloc, told by their names.
 * setjmp, getcontext and their kind are left out: they keep their own return address for later, and
 * hold no lock. Goroutines stop where they stand in a program that is linked statically (no modules
 * of these names), on processors without traps (aarch64 may sign return addresses) and under TSan,
 * which keeps books of calls and returns.
 *
 * Exceptions and backtraces have to pass a trap, and an unwinder knows only the return address that
 * it has read. So there are many traps, each with an address of its own and a record that keeps the
 * true one; the unwind table leads from the first to the second (trap.S).
 *
 *   set        place 0 -> SETTING (CAS: the setter owns the record), true address into the record,
 *              trap onto the stack, place = where the trap stands on the stack (release)
 *   returned   true address onto the stack, place = 0 (CAS)
 *   jumped     the record stays in use. When all are, traps_sweep() frees those whose place
 *              (acquire) holds their trap no more. A trap stands in its place from before the place
 *              is published until the call has returned, so the sweep frees none that is needed.
 *              The upper bits of place count the uses: only one of two threads frees a use
 */
#include "base/base.h" /* first: _GNU_SOURCE */
#include "sched/inlibc.h"
#include "unwind/modules.h"
#include "sched/preempt.h"
#include "base/san.h"
#include "mem/stack.h"
#include "unwind/unwind.h"

#include <link.h>
#include <ucontext.h>

#ifdef ARCH_RETURN_TRAPS
#define ARCH_TRAPS true
#else
#define ARCH_TRAPS false
#endif

#define PATIENCE 40 /* signals; the pause between two grows to milliseconds (stopworld.c, init.c) */
#define STOPPED (PATIENCE + 1) /* trap_tries: the goroutine was stopped inside */

static bool begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

/* The loader's function that binds a call when it is first made. It ends by a jump to the function
 * that was called, whose exceptions a trap would stop. So the resolver does not count as libc: it
 * holds no lock itself, and what it calls has its own way out. */
static struct { uintptr_t lo, hi; /* before the first goroutine runs */ } resolver;

static bool is_libc(uintptr_t pc) {
    if (pc >= resolver.lo && pc < resolver.hi) return false;
    static const char *const names[] = {"libc.",   "libc-",       "ld-",         "libpthread",
                                        "libdl.",  "libjemalloc", "libtcmalloc", "libmimalloc",
                                        "libasan", "liblsan",     "libubsan"};
    Module *mod = module_of_newest(pc); /* below a constructor the loader holds its lock */
    const char *name = mod ? module_name(mod) : "";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (begins(name, names[i])) return true;
    return false;
}

/* Keepers note where they return to, askers look at their caller. Found once, before the first
 * goroutine runs. Without keepers no trap is set. */
static struct Functions {
    uintptr_t at[11];
    uint32_t count;
} keepers, askers;

extern void *dlsym(void *, const char *) __attribute__((weak));
extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *)
    __attribute__((weak));

static bool is_loader(uintptr_t pc) {
    Module *mod = module_of(pc);
    return mod && begins(module_name(mod), "ld-");
}

/* The resolver: the third word of DT_PLTGOT in a module that binds late (System V ABI, x86-64). */
static int look_for_resolver(struct dl_phdr_info *info, size_t n, void *unused) {
    const Elf64_Dyn *d = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    while (d && d->d_tag != DT_NULL && d->d_tag != DT_PLTGOT) d++;
    if (d == NULL || d->d_tag == DT_NULL) return 0;
    uintptr_t table =
        d->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr + d->d_un.d_ptr : d->d_un.d_ptr;
    uintptr_t at = ((const uintptr_t *)table)[2], start, size;
    if (!is_loader(at) || !cfi_function(at, &start, &size)) return 0;
    resolver.lo = start;
    resolver.hi = start + size;
    return 1;
}

/* Is one of f inside the function at start? */
static bool is_among(const struct Functions *f, uintptr_t start, uintptr_t size) {
    for (uint32_t i = 0; i < f->count; i++)
        if (f->at[i] >= start && f->at[i] < start + size) return true;
    return false;
}

static bool keeps_its_return(uintptr_t pc) {
    uintptr_t start, size;
    if (keepers.count == 0 || !cfi_function(pc, &start, &size)) return true;
    if (resolver.lo == 0 && is_loader(pc)) return true; /* it may be the resolver */
    return is_among(&keepers, start, size);
}

static bool asks_for_its_caller(uintptr_t pc) {
    uintptr_t start, size;
    return cfi_function(pc, &start, &size) && is_among(&askers, start, size);
}

/* The bounds of gp's own stack, if sp lies on it; else none. */
static void bounds(G *gp, uintptr_t sp, uintptr_t *lo, uintptr_t *hi) {
    Stack *s = gp->stack;
    bool own = sp >= (uintptr_t)s->lo && sp <= (uintptr_t)s;
    *lo = own ? (uintptr_t)s->lo : 0;
    *hi = own ? (uintptr_t)s : 0;
}

/* pc, which was interrupted, is in a function of a module that has no unwind table. What called it
 * cannot be told: the loader, if this is the _init of a library. */
static bool without_table(uintptr_t pc) {
    uintptr_t start, size;
    return module_of_newest(pc) != NULL && !cfi_function(pc, &start, &size);
}

/* Where is gp, and if inside of libc, where does the return address out of it stand? */
typedef enum Way {
    WAY_NONE,  /* not inside */
    WAY_LATER, /* inside, or that cannot be told: ask again */
    WAY_OUT,   /* *out is the way */
} Way;
static Way way_out(G *gp, void *context, Exit *out) {
    Regs r;
    uintptr_t lo, hi;
    *out = (Exit){0};
    if (gp->stack == NULL) return WAY_NONE;
    regs_context(&r, context);
    if (without_table(r.reg[UNWIND_RA])) return WAY_LATER;
    bounds(gp, r.reg[UNWIND_SP], &lo, &hi);
    *out = unwind_exit(&r, lo, hi, is_libc);
    if (out->at == 0 || keeps_its_return(out->pc)) return WAY_NONE;
    /* an asker has perhaps not read its return address yet */
    return out->exact && asks_for_its_caller(out->pc) ? WAY_LATER : WAY_OUT;
}

bool inlibc_stopped(M *m) {
    G *gp = m->curg;
    Exit out;
    return m->in_handler && m->context && gp && way_out(gp, m->context, &out) != WAY_NONE;
}

bool inlibc_interrupted(M *m) {
    Regs r;
    ucontext_t context;
    if (!load_acq(&m->in_handler) || m->plain) return false;
    if (!read_memory((uintptr_t)load_rlx(&m->context), &context, sizeof context)) return false;
    regs_context(&r, &context);
    return is_libc(r.reg[UNWIND_RA]) && load_acq(&m->in_handler);
}

#ifdef ARCH_RETURN_TRAPS

typedef struct Trap {
    uintptr_t ret;  /* first: trap.S. The true return address, while the trap is set */
    uint64_t place; /* atomic: where the trap stands on a stack, below PLACE_BITS; 0: free */
} Trap;

#define PLACE_BITS 48
#define PLACE(word) ((uintptr_t)((word) & (((uint64_t)1 << PLACE_BITS) - 1)))
#define SETTING 1 /* a place: the record is taken, and its trap not set yet */

_Static_assert(sizeof(Trap) == 16, "trap.S");

extern char arch_return_traps[];
extern Trap arch_trap_records[];                 /* ARCH_RETURN_TRAPS of them */
extern void (*arch_trap_left)(uintptr_t *frame); /* what an entry calls */

static uintptr_t trap_entry(Trap *trap) {
    return (uintptr_t)arch_return_traps + (size_t)(trap - arch_trap_records) * ARCH_TRAP_SIZE +
           ARCH_TRAP_ENTRY;
}

static bool is_trap(uintptr_t pc) {
    return pc - (uintptr_t)arch_return_traps < (size_t)ARCH_RETURN_TRAPS * ARCH_TRAP_SIZE;
}

static Trap *trap_of(uintptr_t entry) {
    return &arch_trap_records[(entry - (uintptr_t)arch_return_traps) / ARCH_TRAP_SIZE];
}

static Trap *trap_take(void) {
    for (Trap *trap = arch_trap_records; trap < arch_trap_records + ARCH_RETURN_TRAPS; trap++) {
        uint64_t word = load_rlx(&trap->place);
        uint64_t next = word + ((uint64_t)1 << PLACE_BITS) + SETTING;
        if (PLACE(word) == 0 && cas_seq(&trap->place, &word, next)) return trap;
    }
    return NULL;
}

/* Does nothing if another thread has freed this use of the record. */
static void trap_free(Trap *trap, uint64_t word) {
    cas_seq(&trap->place, &word, word - PLACE(word));
}

/* Frees the records of traps that were jumped over. */
static void traps_sweep(void) {
    for (Trap *trap = arch_trap_records; trap < arch_trap_records + ARCH_RETURN_TRAPS; trap++) {
        uint64_t word = load_acq(&trap->place); /* pairs with trap_set: the trap is on the stack */
        uintptr_t there = 0;
        if (PLACE(word) <= SETTING) continue;
        if (read_memory(PLACE(word), &there, sizeof there) && there == trap_entry(trap)) continue;
        trap_free(trap, word);
    }
}

static bool trap_set(uintptr_t *at) {
    Trap *trap = trap_take();
    if (trap == NULL) {
        traps_sweep();
        trap = trap_take();
    }
    if (trap == NULL) return false;
    trap->ret = *at;
    fence_compiler(); /* this thread's own handlers may unwind */
    *at = trap_entry(trap);
    store_rel(&trap->place, trap->place - SETTING + (uintptr_t)at); /* pairs with traps_sweep */
    add_rlx(&sched.trapped, 1);
    return true;
}

/* An exception is on its way. The unwinder finds the catching frame again by an address that a trap
 * changes. So no trap is set meanwhile, and the stopper asks again. */
static bool throwing(M *m) { return m->handling && m->handling->uncaught != 0; }

/* trap_tries goes on from call to call: a goroutine that leaves each by a jump is stopped in the
 * end. */
int inlibc_trap(G *gp, void *context) {
    Stack *s = gp->stack;
    Exit out = {0};
    Way way = tsan_on() ? WAY_NONE : way_out(gp, context, &out);
    if (way == WAY_NONE) {
        if (s) s->trap_tries = 0;
        return OUTSIDE;
    }
    uintptr_t *at = (uintptr_t *)out.at;
    bool fresh = at == NULL || !is_trap(*at);
    if (fresh && s->trap_tries == STOPPED) s->trap_tries = 0; /* that was in an earlier call */
    if (s->trap_tries >= PATIENCE) {
        s->trap_tries = STOPPED;
        return OUTSIDE;
    }
    if (fresh && way == WAY_OUT && !throwing(getm()) && !trap_set(at)) return OUTSIDE;
    s->trap_tries++;
    return out.callback ? IN_CALLBACK : INSIDE;
}

/* From trap.S. frame: the caller's frame pointer, the trap; the caller's sp is frame + 2. */
static void inlibc_left(uintptr_t *frame) {
    int err = *__errno_location();
    M *m = getm();
    valgrind_written(&frame[1], sizeof frame[1]);
    Trap *trap = trap_of(frame[1]);
    uint64_t word = load_rlx(&trap->place);
    frame[1] = trap->ret;
    trap_free(trap, word);
    m->curg->stack->trap_tries = 0;
    m_mark_call(m, frame);
    preempt_after_libc(m);
    *__errno_location() = err;
}

#else

int inlibc_trap(G *gp, void *context) { return OUTSIDE; }

#endif

static void look_up(struct Functions *f, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uintptr_t at = (uintptr_t)dlsym(NULL, names[i]);
        if (at) f->at[f->count++] = at;
    }
}

void inlibc_start(void) {
#if ARCH_TRAPS
    arch_trap_left = inlibc_left;
#endif
    if (ARCH_TRAPS && resolver.lo == 0 && dl_iterate_phdr) dl_iterate_phdr(look_for_resolver, NULL);
    static const char *const keep[] = {"setjmp",      "_setjmp",       "__sigsetjmp", "getcontext",
                                       "swapcontext", "setcontext",    "longjmp",     "_longjmp",
                                       "siglongjmp",  "__longjmp_chk", "vfork"};
    static const char *const ask[] = {"dlsym", "dlvsym", "dlopen", "dlmopen", "dlinfo"};
    if (keepers.count || dlsym == NULL) return;
    look_up(&askers, ask, count_of(ask));
    look_up(&keepers, keep, count_of(keep));
}
