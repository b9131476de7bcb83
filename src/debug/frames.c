/*
 * A backtrace as text, for the program's authors.
 *
 *       0x000055e0a1b2c3a0 gort_chan_recv+0x1f (app)
 *       0x000055e0a1b2c3d4 visit+0x54 app.c:34 (app)
 *       0x000055e0a1b2c3d4 visit+0x54 app.c:34 (app)
 *       0x000055e0a1b2c3d4 visit+0x54 app.c:34 (app)
 *       ... 1,234 more of these frames
 *       0x000055e0a1b2c410 walk+0x12 app.c:51 (app)
 *
 * A goroutine that waits stands some calls deep in the library. Of those frames only the outermost
 * is shown, the call that the program made, without its line in the library. The functions that
 * every goroutine begins with are left out, too. A report of fatal() begins with the library's
 * function that has called it, and keeps those frames: they tell what was found wrong.
 *
 * Which frames are the library's? It is one object (or one shared library), and linkers keep the
 * code of an object together: what lies between two functions of the library is the library's. Of
 * what a compiler has put elsewhere, hot and cold functions, only goroutine_entry() matters here.
 * The hook's are the library's, too: a wait shows libc's function that the program has called. So
 * are those of libc that stand below ours, where a thread or main begins (sched/body.c).
 */
#include "debug/frames.h"
#include "base/upstairs.h"
#include "runtime.h"
#include "sched/schedule.h"
#include "unwind/modules.h"
#include "unwind/symbols.h"
#include "unwind/unwind.h"

void arch_entry(void);

static bool frame_is_in(uintptr_t pc, const char *library) {
    const Module *mod = module_of(pc);
    return mod && begins_with(module_name(mod), library);
}

bool frame_is_ours(uintptr_t pc) {
    const uintptr_t some[] = {(uintptr_t)upstairs.unwound, (uintptr_t)gort_dump,
                              (uintptr_t)gort_chan_recv, (uintptr_t)gort_sleep,
                              (uintptr_t)symbol_print};
    uintptr_t start, size, entry = (uintptr_t)goroutine_entry, outermost = (uintptr_t)arch_entry;
    bool above = false, below = false;
    for (size_t i = 0; i < count_of(some); i++) {
        above |= pc >= some[i];
        below |= pc < some[i];
    }
    if ((above && below) || frame_is_in(pc, "libgort-hook.so")) return true;
    if (!cfi_function(pc, &start, &size)) return false;
    return entry - start < size || outermost - start < size;
}

static bool frame_is_public(uintptr_t pc) {
    const char *name = symbol_of(pc).name;
    return name && begins_with(name, "gort_");
}

/* Of the n frames the last ones, which are libc's: how many, if ours have called them. */
#define LIBCS_FIRST 2
static int frames_of_libc(const Frames *f, int first, int n) {
    for (int i = 0; i <= LIBCS_FIRST && n - i > first; i++) {
        uintptr_t pc = f->pcs[n - i - 1] - 1;
        if (frame_is_ours(pc)) return i;
        if (!frame_is_in(pc, "libc.so")) return 0;
    }
    return 0;
}

/* How many frames remain without those that every goroutine begins with. The outermost one of the
 * program's is the last; where tail calls have left none, the call that it made. */
static int frames_wanted(const Frames *f, int first) {
    for (int i = f->n; i > first; i--) {
        i -= frames_of_libc(f, first, i);
        if (!frame_is_ours(f->pcs[i - 1] - 1)) return i;
    }
    for (int i = f->n; i > first; i--)
        if (frame_is_public(f->pcs[i - 1] - 1)) return i;
    return f->n;
}

/* 1,234 */
static void out_count(Out *o, uint32_t n) {
    if (n >= 1000) {
        out_count(o, n / 1000);
        out_fmt(o, ",%03u", n % 1000);
    } else {
        out_fmt(o, "%u", n);
    }
}

static void frame_print(Out *o, const Frames *f, int i, bool with_line) {
    out_fmt(o, "  0x%016lx ", f->pcs[i]);
    (with_line ? symbol_print : symbol_print_bare)(o, i == 0 ? f->pcs[i] : f->pcs[i] - 1);
    out_str(o, "\n");
    if (f->more[i] == 0) return;
    out_str(o, "  ... ");
    out_count(o, f->more[i]);
    out_str(o, " more of these frames\n");
}

void frames_print(Out *o, const Frames *f, int first) {
    int i = first, n = frames_wanted(f, first);
    while (first == 0 && i < n - 1 && frame_is_ours(f->pcs[i] - 1) &&
           frame_is_ours(f->pcs[i + 1] - 1))
        i++;
    bool call = first == 0 && i < n && frame_is_ours(f->pcs[i] - 1);
    if (i < n) frame_print(o, f, i++, !call);
    while (i < n) frame_print(o, f, i++, true);
}

void frames_print_all(Out *o, const Frames *f) {
    for (int i = 0; i < f->n; i++) frame_print(o, f, i, true);
}
