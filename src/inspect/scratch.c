/*
 * The memory of the goroutines that serve the live page.
 *
 * The end of a runtime stops a goroutine for good at any moment between two sections, with
 * megabytes of an answer that its client does not take. What malloc had given it would be lost with
 * each runtime. So these goroutines use no malloc: each part of their memory is mapped, and entered
 * in the goroutine's list, in one section, and leaves both in one. The list hangs on the
 * goroutine's exit hooks (goexit.h), where the end finds it.
 *
 * Parts are whole pages, and cost system calls: they are for texts and tables. A part that is taken
 * without a list (a test of the formats) belongs to its taker alone.
 */
#include "inspect/scratch.h"
#include "base/sysfault.h"
#include "os/os.h"
#include "sched/sched.h"

#define PAGE 4096 /* or more: the kernel rounds up */

struct ScratchPart {
    ScratchPart *next, **link; /* link: what points to this one; NULL: no list */
    size_t size;               /* with this head */
    size_t pad;                /* keeps what follows aligned for any type */
};

static void scratch_lost(ExitHook *h) {
    Scratch *s = container_of(h, Scratch, hook);
    for (ScratchPart *p = s->parts, *next; p; p = next) {
        next = p->next;
        os_unmap(p, p->size);
    }
    s->parts = NULL;
}

/* Of the running goroutine; NULL: it has none. In a section. */
static Scratch *scratch_of(G *gp) {
    for (ExitHook *h = gp->spare; h; h = h->next)
        if (h->abandon == scratch_lost) return container_of(h, Scratch, hook);
    return NULL;
}

void scratch_begin(Scratch *s) {
    *s = (Scratch){.hook = {.abandon = scratch_lost}};
    M *m = enter();
    exit_hook_push(self(m), &s->hook);
    leave(m);
}

void scratch_end(Scratch *s) {
    M *m = enter();
    exit_hook_pop(self(m), &s->hook);
    scratch_lost(&s->hook);
    leave(m);
}

static void part_enter(ScratchPart *p, Scratch *s) {
    if (s == NULL) return;
    p->next = s->parts;
    p->link = &s->parts;
    if (p->next) p->next->link = &p->next;
    s->parts = p;
}
static void part_leave(ScratchPart *p) {
    if (p->link == NULL) return;
    *p->link = p->next;
    if (p->next) p->next->link = p->link;
}
static ScratchPart *part_of(void *at) { return (ScratchPart *)at - 1; }

void *scratch_get(size_t n) {
    size_t size = (n + sizeof(ScratchPart) + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (sysfault_alloc() || size < n) return NULL;
    M *m = enter();
    ScratchPart *p = os_map(size, false);
    if (p) {
        p->size = size;
        part_enter(p, scratch_of(self(m)));
    }
    leave(m);
    return p ? p + 1 : NULL;
}

void scratch_free(void *at) {
    if (at == NULL) return;
    M *m = enter();
    part_leave(part_of(at));
    os_unmap(part_of(at), part_of(at)->size);
    leave(m);
}

static size_t room_of(void *at) { return part_of(at)->size - sizeof(ScratchPart); }

void *scratch_grow(void *at, size_t n) {
    void *more = scratch_get(n);
    if (more == NULL || at == NULL) return more;
    memcpy(more, at, room_of(at) < n ? room_of(at) : n);
    scratch_free(at);
    return more;
}

bool scratch_more(Out *o) {
    size_t size = o->size ? (size_t)o->size * 2 : 1;
    char *buf = size < UINT32_MAX / 2 ? scratch_grow(o->buf, size) : NULL;
    if (buf == NULL) return false;
    o->buf = buf;
    o->size = (uint32_t)room_of(buf);
    return true;
}
