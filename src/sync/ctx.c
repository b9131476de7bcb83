/*
 * Contexts: a tree of cancellations, with deadlines and values.
 *
 * A context is a node with a channel that is closed on cancellation, a cause (0 while it lives) and
 * a list of children. A child holds a reference to its parent as long as it exists, for values. A
 * parent lists its living children without a reference: a child takes itself off before it goes.
 *
 * Cancelling c:
 *   1  the cause is set by a CAS from 0: the first cause counts, and a loser is done.
 *   2  the channel is closed. So a receiver that it wakes finds the cause.
 *   3  under c's lock, c is marked as dead, the waits of its users are ended (ender.h), and
 *      its children, each with a reference, move to a list of work; a child that is made later
 *      finds the mark, and its maker cancels it.
 *   4  c takes itself off its parent's list, and its deadline off the clock.
 *   5  the children on the list are cancelled likewise, with c's cause; nothing recurses.
 * Steps 1 to 4 are one section, so the end of a runtime stops a canceller only between two
 * contexts, and does the rest itself. No two locks are held at once.
 *
 * If two calls cancel at once, the second returns while the first is still on its way down. So that
 * no caller sees a living child of a dead parent, gort_ctx_err() and gort_ctx_done() look upwards
 * too, and carry down a cause that has not arrived yet.
 *
 * A deadline is a timer on the runtime's heap, or without a runtime on clock.c's. It holds a
 * reference while armed, which goes to the function that takes it off its clock: cancel_node,
 * ctx_expired, or at the end of a runtime ctx_moved, which changes the clock.
 *
 * Orders: the cause's CAS (release) pairs with gort_ctx_err()'s acquire; the channel does the rest.
 */
#include "base/hint.h"
#include "sync/chan.h"
#include "sync/clock.h"
#include "sched/goexit.h"
#include "sync/sema.h"
#include "sync/free_later.h"
#include "base/fatal.h"
#include "base/print.h"

struct gort_ctx {
    Refs refs;
    int32_t err;   /* atomic: the cause; EXPIRED: its deadline */
    int32_t ended; /* atomic: gort_ctx_err's value, once the channel is closed */
    Lock lock;     /* RANK_CTX */
    /* the program: */
    bool released; /* atomic: read in freed memory where the program releases c again */
    /* lock: */
    bool dead;  /* no child may be linked any more */
    bool armed; /* the clock has a reference */
    gort_ctx *children;
    Ender *users; /* each with a reference */
    /* the parent's lock: */
    bool linked;
    gort_ctx *next, *prev; /* siblings */
    /* the canceller: */
    gort_ctx *work;
    /* constant: */
    gort_ctx *parent; /* referenced; NULL: a root */
    gort_chan *done;
    bool valued;
    const void *key;
    void *value;
    int64_t deadline; /* the earlier of its own and its parent's */
    Timer timer;      /* on the runtime's heap, or clock.c's */
};

/* Frees c, and its parents while c held their last reference. */
static void ctx_destroy(Refs *r) {
    gort_ctx *c = container_of(r, gort_ctx, refs);
    while (c != NULL) {
        gort_ctx *parent = c->parent;
        tsan_acquire(&c->refs);
        gort_chan_release(c->done);
        quiet_free(c);
        c = parent != NULL && refs_last(&parent->refs) ? parent : NULL;
    }
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* In a section. */
static void unlink_child(gort_ctx *c) {
    gort_ctx *parent = c->parent;
    if (parent == NULL) return;
    lock(&parent->lock, RANK_CTX);
    if (c->linked) {
        if (c->prev) c->prev->next = c->next;
        else parent->children = c->next;
        if (c->next) c->next->prev = c->prev;
        c->linked = false;
    }
    unlock(&parent->lock);
}

#define EXPIRED INT32_MIN

/* Of the word in gort_ctx.err. */
static int err_of(int32_t cause) {
    return cause == 0 ? 0 : cause == EXPIRED ? -ETIMEDOUT : -ECANCELED;
}

/* Step 3. True: a deadline was armed, and the caller takes it back. In a section. */
static bool kill_node(gort_ctx *c, gort_ctx **work, GList *waiters) {
    lock(&c->lock, RANK_CTX);
    c->dead = true;
    store_seq(&c->ended, err_of(load_rlx(&c->err)));
    for (Ender *e = c->users; e != NULL; e = e->next) ender_strike(e, waiters);
    bool armed = c->armed;
    c->armed = false;
    for (gort_ctx *child = c->children, *next; child != NULL; child = next) {
        next = child->next;
        child->linked = false;
        add_rlx(&child->refs.count, 1);
        child->work = *work;
        *work = child;
    }
    c->children = NULL;
    unlock(&c->lock);
    return armed;
}

/* Steps 1 to 4. In a section; the caller has a reference, and nothing is freed here. */
static void cancel_node(gort_ctx *c, int cause, gort_ctx **work) {
    int32_t none = 0;
    if (!cas_acq_rel(&c->err, &none, cause)) return;
    gort_chan_close(c->done);
    GList waiters = {0};
    bool back = kill_node(c, work, &waiters) && timer_del(&c->timer);
    if (waiters.head) ready_list(getm(), &waiters);
    unlink_child(c);
    if (back) refs_drop_later(&c->refs); /* the clock's */
}

typedef struct Cancel {
    ExitHook hook;
    int cause;
    gort_ctx *work; /* to be cancelled, each with a reference */
} Cancel;

/* Step 5 for one child; in a section. */
static void cancel_next(Cancel *k) {
    gort_ctx *c = k->work;
    k->work = c->work;
    cancel_node(c, k->cause, &k->work);
    refs_drop_later(&c->refs);
}

static void cancel_rest(ExitHook *h) {
    Cancel *k = container_of(h, Cancel, hook);
    while (k->work != NULL) cancel_next(k);
}

void ctx_cancel_in_section(gort_ctx *c, int cause) {
    Cancel k = {.cause = cause};
    cancel_node(c, cause, &k.work);
    cancel_rest(&k.hook);
}

/* Outside of sections. A section for each, so that a large tree keeps no goroutine waiting. */
static void ctx_cancel(gort_ctx *c, int cause) {
    Cancel k = {.hook = {.abandon = cancel_rest}, .cause = cause};
    M *m = enter();
    cancel_node(c, cause, &k.work);
    if (unlikely(k.work != NULL)) {
        exit_hook_push(self(m), &k.hook);
        do {
            leave(m);
            m = enter();
            cancel_next(&k);
        } while (k.work != NULL);
        exit_hook_pop(self(m), &k.hook);
    }
    leave(m);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* Has the clock's reference. armed is cleared first, so that a canceller leaves it alone; a faster
 * canceller finds the deadline off its clock. */
static void ctx_expired(gort_ctx *c) {
    M *m = enter();
    lock(&c->lock, RANK_CTX);
    c->armed = false;
    unlock(&c->lock);
    ctx_cancel_in_section(c, EXPIRED);
    refs_drop_later(&c->refs);
    leave(m);
}

static void expired_timer(M *m, void *arg, uint32_t seq) { ctx_expired(arg); }

/* The runtime has ended: the deadline goes to the fallback clock, unless c is cancelled by now. */
static void ctx_moved(Timer *t) {
    gort_ctx *c = t->arg;
    bool start = false;
    M *m = enter();
    lock(&c->lock, RANK_CTX);
    bool armed = c->armed;
    if (armed) start = clock_add(t);
    unlock(&c->lock);
    leave(m);
    if (!armed) refs_drop_later(&c->refs);
    if (start && clock_start() < 0)
        print_fd(2, "gort: no thread for the deadlines of contexts outside of a runtime\n");
}

/* Arms the deadline, unless c is cancelled by now. 0, -ENOMEM, -EAGAIN: no thread for clock.c. */
static int ctx_arm(gort_ctx *c) {
    int r = 0;
    bool start = false;
    if (!clock_prepare()) return -ENOMEM; /* for ctx_moved */
    M *m = enter();
    lock(&c->lock, RANK_CTX);
    if (!c->dead) {
        c->timer = (Timer){.when = c->deadline, .fn = expired_timer, .arg = c, .forget = ctx_moved};
        r = runtime_running() ? timer_add(m, &c->timer) : -ENOTCONN;
        if (r == -ENOTCONN) start = clock_add(&c->timer), r = 0;
        c->armed = r == 0;
        if (c->armed) add_rlx(&c->refs.count, 1);
    }
    unlock(&c->lock);
    leave(m);
    return start ? clock_start() : r;
}

/* ---- the interface --------------------------------------------------------------------------- */

static gort_ctx *ctx_make(gort_ctx *parent) {
    if (in_forked_child()) return NULL;
    garbage_collect();
    gort_ctx *c = quiet_alloc(sizeof *c);
    gort_chan *done = gort_chan_new(0, 0);
    if (c == NULL || done == NULL) {
        quiet_free(c);
        gort_chan_release(done);
        return NULL;
    }
    *c = (gort_ctx){.refs = {.count = 1, .destroy = ctx_destroy}, .done = done, .parent = parent};
    c->deadline = parent != NULL ? parent->deadline : GORT_FOREVER;
    if (parent != NULL) add_rlx(&parent->refs.count, 1);
    return c;
}

/* Puts c, fresh or NULL, into its parent's list; where the parent is cancelled, so is c. */
static gort_ctx *ctx_attach(gort_ctx *c) {
    gort_ctx *parent = c != NULL ? c->parent : NULL;
    if (parent == NULL) return c;
    M *m = enter();
    lock(&parent->lock, RANK_CTX);
    bool alive = !parent->dead;
    if (alive) {
        c->next = parent->children;
        if (c->next) c->next->prev = c;
        parent->children = c;
        c->linked = true;
    }
    unlock(&parent->lock);
    leave(m);
    if (!alive) ctx_cancel(c, load_acq(&parent->err));
    return c;
}

EXPORT gort_ctx *gort_ctx_new(gort_ctx *parent) { return ctx_attach(ctx_make(parent)); }

EXPORT gort_ctx *gort_ctx_with_value(gort_ctx *parent, const void *key, void *value) {
    gort_ctx *c = ctx_make(parent);
    if (c == NULL) return NULL;
    c->valued = true;
    c->key = key;
    c->value = value;
    return ctx_attach(c);
}

EXPORT gort_ctx *gort_ctx_with_deadline(gort_ctx *parent, int64_t deadline) {
    gort_ctx *c = ctx_make(parent);
    if (c == NULL) return NULL;
    bool own = deadline < c->deadline; /* else the parent's comes first and is enough */
    if (own) c->deadline = deadline;
    ctx_attach(c);
    if (!own || load_acq(&c->err) != 0) return c;
    if (deadline <= os_now()) {
        hint_passed(deadline);
        ctx_cancel(c, EXPIRED);
    } else if (ctx_arm(c) < 0) {
        gort_ctx_release(c);
        return NULL;
    }
    return c;
}

EXPORT gort_ctx *gort_ctx_with_timeout(gort_ctx *parent, int64_t ns) {
    return gort_ctx_with_deadline(parent, time_after(os_now(), ns));
}

EXPORT void *gort_ctx_value(gort_ctx *c, const void *key) {
    if (in_forked_child()) return NULL;
    for (; c != NULL; c = c->parent)
        if (c->valued && c->key == key) return c->value;
    return NULL;
}

EXPORT void gort_ctx_cancel_cause(gort_ctx *c, int err) {
    if (in_forked_child()) return;
    if (err >= 0 || err == EXPIRED) fatal("gort_ctx_cancel_cause with %d, which is no error", err);
    if (c == NULL) return;
    leave(enter()); /* a child of vfork ends here, before it has changed anything */
    ctx_cancel(c, err);
    garbage_collect();
}

EXPORT void gort_ctx_cancel(gort_ctx *c) { gort_ctx_cancel_cause(c, -ECANCELED); }

/* The cause of c; one that is still above c is carried down to it, channel included. */
static int ctx_settle(gort_ctx *c) {
    int cause = 0;
    clock_resume();
    for (gort_ctx *up = c; up != NULL && cause == 0; up = up->parent) cause = load_acq(&up->err);
    if (likely(cause == 0)) return 0;
    ctx_cancel(c, cause);
    gort_chan_close(c->done); /* the setter of the cause may not have come to it yet */
    return load_acq(&c->err);
}

EXPORT gort_chan *gort_ctx_done(gort_ctx *c) {
    if (c == NULL || in_forked_child()) return NULL;
    ctx_settle(c);
    return c->done;
}

EXPORT int gort_ctx_err(gort_ctx *c) {
    if (in_forked_child()) return -ENOTCONN;
    poll_attention();
    return c != NULL ? err_of(ctx_settle(c)) : 0;
}

EXPORT int gort_ctx_cause(gort_ctx *c) {
    if (in_forked_child()) return -ENOTCONN;
    poll_attention();
    int cause = c != NULL ? ctx_settle(c) : 0;
    return cause == EXPIRED ? -ETIMEDOUT : cause;
}

EXPORT int64_t gort_ctx_deadline(gort_ctx *c) {
    if (in_forked_child()) return -ENOTCONN;
    return c != NULL ? c->deadline : GORT_FOREVER;
}

EXPORT void gort_ctx_release(gort_ctx *c) {
    if (c == NULL || in_forked_child()) return;
    M *m = enter(); /* a child that shares the memory stops here, and leaves no mark */
    bool before = load_rlx(&c->released);
    store_rlx(&c->released, true);
    leave(m);
    if (unlikely(before)) fatal("gort_ctx_release: context %p is released twice", (void *)c);
    gort_ctx_cancel(c);
    refs_drop(&c->refs);
}

/* ---- in use ---------------------------------------------------------------------------------- */

/* The use of gp ends. In a section; the reference is the caller's. NULL: there was none. */
static gort_ctx *use_over(G *gp) {
    Ender *e = ender_of(gp);
    if (e == NULL || e->ctx == NULL) return NULL; /* none, or signals end its waits (body.h) */
    gort_ctx *c = e->ctx;
    gp->odd &= ~(uint32_t)ODD_USES;
    /* a commit of gp's last wait may not be over, though a timer has ended the wait */
    while (load_acq(&e->kept) != 0) os_yield();
    lock(&c->lock, RANK_CTX);
    if (e->prev) e->prev->next = e->next;
    else c->users = e->next;
    if (e->next) e->next->prev = e->prev;
    unlock(&c->lock);
    return c;
}

static void use_begin(G *gp, gort_ctx *c) {
    add_rlx(&c->refs.count, 1);
    gp->odd |= ODD_USES;
    Ender *e = ender_of(gp);
    lock(&c->lock, RANK_CTX);
    *e = (Ender){.cause = &c->ended, .gp = gp, .ctx = c, .next = c->users};
    if (e->next) e->next->prev = e;
    c->users = e;
    unlock(&c->lock);
}

void ctx_use_ends(G *gp) {
    gort_ctx *c = use_over(gp);
    if (c) refs_drop_later(&c->refs);
}

EXPORT gort_ctx *gort_ctx_use(gort_ctx *c) {
    if (in_forked_child()) return NULL;
    garbage_collect();
    if (c) ctx_settle(c); /* a cause that is still above it */
    M *m = enter();
    gort_ctx *former = use_over(self(m));
    if (c) use_begin(self(m), c);
    leave(m);
    if (former) refs_drop(&former->refs);
    return former;
}

EXPORT gort_ctx *gort_ctx_used(void) {
    if (in_forked_child()) return NULL;
    M *m = enter();
    Ender *e = ender_of(self(m));
    gort_ctx *c = e ? e->ctx : NULL;
    leave(m);
    return c;
}

/* ---- afterwards ------------------------------------------------------------------------------ */

typedef struct After {
    gort_ctx *ctx; /* referenced; NULL: dropped */
    gort_fn *fn;
    void *arg;
} After;

/* In a section. Also where the runtime has ended: perhaps the goroutine has never run. */
void ctx_after_abandon(void *arg) {
    After *a = arg;
    if (a->ctx != NULL) refs_drop_later(&a->ctx->refs);
    a->ctx = NULL;
}

/* A goroutine's function; arg is its own copy. */
void ctx_after_run(void *arg) {
    After *a = arg;
    gort_chan_recv(a->ctx->done, NULL);
    M *m = enter();
    ctx_after_abandon(a);
    leave(m);
    a->fn(a->arg);
}

EXPORT int gort_ctx_after(gort_ctx *c, gort_fn *fn, void *arg) {
    if (in_forked_child()) return -ENOTCONN;
    if (c == NULL || fn == NULL) return -EINVAL;
    After a = {c, fn, arg};
    ctx_settle(c);
    add_rlx(&c->refs.count, 1);
    int r = gort_go_copy(ctx_after_run, &a, sizeof a);
    if (r < 0) refs_drop(&c->refs);
    return r;
}
