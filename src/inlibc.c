/*
 * Nobody is stopped for good inside libc.
 *
 * The preemption handler stops a goroutine anywhere, in malloc, in printf, in the loader, with the lock that it has there.
 * For a slice that is fine: its thread keeps the lock, as if the kernel had preempted it. But where it stops for good, since
 * the runtime ends, or for as long as somebody else likes, since the world is stopped, the next printf of the program would
 * wait for ever. So there it goes on until it has left libc:
 *
 *   1  the handler walks the stack of the goroutine and finds the outermost frame of libc's. The return address of that frame
 *      is replaced by arch_return_trap, and the handler returns. It is the goroutine's own thread that does this, so the
 *      stack does not change meanwhile
 *   2  libc goes on, releases what it holds, and returns into the trap
 *   3  inlibc_left() does there what the handler would have done, and gives the true return address
 *
 * A callback (of qsort, of dl_iterate_phdr) runs on as part of libc's call. Whoever still stands in it after PATIENCE signals
 * is stopped where it stands, with the lock that libc may hold around it (gort_go(3) says so).
 *
 * What a lock of another library is worth, only that library knows: the rule is for libc, the loader and whatever may stand in
 * for malloc, told by their names. Not for the C++ runtime: an exception on its way reads the return addresses of the stack.
 * Nor for setjmp, getcontext and their kind, which keep their own return address for later; they hold no lock. A program that is linked statically has no modules of these names,
 * and the other processors have no trap (on aarch64 return addresses may be signed): there everybody stops where it stands,
 * as for a slice. So does a program under TSan, which keeps books of calls and returns.
 *
 * trap_at and trap_ret are in the record of the stack, since that is what the trap belongs to. A trap that was jumped over
 * (longjmp) leaves them behind: they count only while trap_at is the way out of libc.
 */
#include "base.h" /* first: _GNU_SOURCE */
#include "inlibc.h"
#include "modules.h"
#include "preempt.h"
#include "san.h"
#include "slots.h"
#include "stack.h"
#include "unwind.h"

#include <link.h>

#ifdef ARCH_RETURN_TRAP
#define ARCH_TRAPS true
#else
#define ARCH_TRAPS false
#endif

#define PATIENCE 40 /* signals; the pause between two grows to milliseconds (world.c, init.c) */

static bool begins(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }

/* The loader's function behind calls that are bound when first made. It does not return: it jumps to the function that was called, with the
 * return address of that, and a trap there would stand in the way of an exception which that function throws. It holds no
 * lock itself: who is inside leaves where what it calls returns to it. */
static struct {
    uintptr_t lo, hi; /* before the first goroutine runs */
} resolver;

static bool is_libc(uintptr_t pc) {
    if (pc >= resolver.lo && pc < resolver.hi) return false;
    static const char *const names[] = {"libc.",       "libc-",       "ld-",     "libpthread", "libdl.", "libjemalloc",
                                        "libtcmalloc", "libmimalloc", "libasan", "liblsan",    "libubsan"};
    Module *mod = module_of(pc);
    const char *name = mod ? module_name(mod) : "";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (begins(name, names[i])) return true;
    return false;
}

/* Functions that note where they return to. Looked up once, before the first goroutine runs; none: nobody is trapped. */
static uintptr_t keepers[11];
static uint32_t nkeepers;

extern void *dlsym(void *, const char *) __attribute__((weak));
extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *) __attribute__((weak));

static bool is_loader(uintptr_t pc) {
    Module *mod = module_of(pc);
    return mod && begins(module_name(mod), "ld-");
}

/* The third word of the table that a module's calls go through, where it binds them late (System V ABI, x86-64). */
static int look_for_resolver(struct dl_phdr_info *info, size_t n, void *unused) {
    const Elf64_Dyn *d = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    while (d && d->d_tag != DT_NULL && d->d_tag != DT_PLTGOT) d++;
    if (d == NULL || d->d_tag == DT_NULL) return 0;
    uintptr_t table = d->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr + d->d_un.d_ptr : d->d_un.d_ptr;
    uintptr_t at = ((const uintptr_t *)table)[2], start, size;
    if (!is_loader(at) || !cfi_function(at, &start, &size)) return 0;
    resolver.lo = start;
    resolver.hi = start + size;
    return 1;
}

void inlibc_start(void) {
    if (ARCH_TRAPS && resolver.lo == 0 && dl_iterate_phdr) dl_iterate_phdr(look_for_resolver, NULL);
    static const char *const names[] = {"setjmp", "_setjmp", "__sigsetjmp", "getcontext", "swapcontext", "setcontext",
                                        "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "vfork"};
    if (nkeepers || dlsym == NULL) return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uintptr_t at = (uintptr_t)dlsym(NULL, names[i]);
        if (at) keepers[nkeepers++] = at;
    }
}

static bool keeps_its_return(uintptr_t pc) {
    uintptr_t start, size;
    if (nkeepers == 0 || !cfi_function(pc, &start, &size)) return true;
    if (resolver.lo == 0 && is_loader(pc)) return true; /* it may be that function */
    for (uint32_t i = 0; i < nkeepers; i++)
        if (keepers[i] >= start && keepers[i] < start + size) return true;
    return false;
}

/* The bounds of the stack that sp lies on; false: it is none of the goroutine's. */
static bool bounds(G *gp, uintptr_t sp, uintptr_t *lo, uintptr_t *hi) {
    Stack *s = gp->stack;
    int cls;
    *lo = *hi = 0;
    if (s == NULL) return false;
    if (slot_at(sp, &cls) != 0) return true; /* a segment */
    *lo = (uintptr_t)s->lo;
    *hi = (uintptr_t)s;
    return sp >= *lo && sp <= *hi;
}

/* Where the return address out of libc stands; 0: gp is not inside. */
static uintptr_t way_out(G *gp, void *context) {
    Regs r;
    uintptr_t lo, hi;
    regs_context(&r, context);
    if (!bounds(gp, r.reg[UNWIND_SP], &lo, &hi)) return 0;
    uintptr_t last = 0, at = unwind_exit(&r, lo, hi, is_libc, &last);
    return keeps_its_return(last) ? 0 : at;
}

bool inlibc_stopped(M *m) {
    G *gp = m->curg;
    return m->in_handler && m->context && gp && way_out(gp, m->context) != 0;
}

#ifdef ARCH_RETURN_TRAP

void arch_return_trap(void);
uintptr_t inlibc_left(uintptr_t *frame);

bool inlibc_trap(G *gp, void *context) {
    Stack *s = gp->stack;
    uintptr_t at = tsan_on() ? 0 : way_out(gp, context);
    if (at == 0) return false;
    if ((uintptr_t)s->trap_at == at && *s->trap_at == (uintptr_t)arch_return_trap) return s->trap_tries++ < PATIENCE;
    if (*(uintptr_t *)at == (uintptr_t)arch_return_trap) return false; /* somebody else's: stops where it stands */
    s->trap_tries = 0;
    s->trap_ret = *(uintptr_t *)at;
    s->trap_at = (uintptr_t *)at;
    *s->trap_at = (uintptr_t)arch_return_trap;
    return true;
}

/* frame: the caller's frame pointer; its sp is behind the next word. */
uintptr_t inlibc_left(uintptr_t *frame) {
    int err = *__errno_location();
    M *m = getm();
    Stack *s = m->curg->stack;
    uintptr_t back = s->trap_ret;
    s->trap_at = NULL;
    store_rlx(&m->call[0], back);
    store_rlx(&m->call[1], (uintptr_t)(frame + 2));
    store_rlx(&m->call[2], frame[0]);
    preempt_after_libc(m);
    *__errno_location() = err;
    return back;
}

#else

bool inlibc_trap(G *gp, void *context) { return false; }

#endif
