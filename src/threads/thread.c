/*
 * Threads begin and end: pthread_create, join, detach, exit, and C11's names for them.
 *
 * A goroutine with a body runs shell(), life after life:
 *
 *   T1  life_begin takes a spare one of that stack size, or makes one and waits until it says
 *       who it is; fills in the life, counts it, gives `begin`.
 *   T2  thread_life calls the function. pthread_exit and cancellation unwind to there, as to the
 *       start of a thread: libc's frame for that is entered anew for each life.
 *   T3  The life ends as libc ends a thread's: destructors of the thread's C++ objects and of its
 *       keys run, robust mutexes get a dead owner. Then every __thread variable gets its first
 *       value, errno likewise: the next life, which begins with its creator's signal mask and
 *       floating-point environment and the locale of the process, finds what a new thread finds.
 *       It has another tid: other mutexes that this one has left locked have an owner, for ever.
 *   T4  Detached: the Thread is spare. Else it waits for its joiner as THREAD_ENDED, gives `over`,
 *       and the joiner makes it spare. Until then its id is not used again.
 *   T5  Where there are spare ones enough, or a life cannot be undone (libc does not tell where it
 *       notes that a thread was cancelled, or has opened a library since whose variables have their
 *       place in every thread), the goroutine ends, and libc ends its thread.
 *
 * What is not undone: libc's own variables (malloc's cache, the resolver's state), which the next
 * life can use.
 *
 * A child of fork has one thread, which libc ends: pthread_exit again, to the body's start.
 *
 * The program ends when main returns. Where main has called pthread_exit it waits for the last
 * life, and the last thread that is libc's, and calls exit.
 */
#include "threads/signals.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <locale.h>
#include <netdb.h>
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>

#define SPARES 1000

Threads threads;
Thread first_thread;
static __thread Thread *me __attribute__((tls_model("initial-exec")));
static gort_sem all_ended; /* to main, after its pthread_exit */

Thread *thread_me(void) { return me; }
void thread_is_first(void) {
    me = &first_thread;
    me->id = pthread_self();
}

M *threads_lock(void) {
    M *m = core->enter();
    core->lock(&threads.lock);
    return m;
}
void threads_unlock(M *m) {
    core->unlock(&threads.lock);
    core->leave(m);
}

/* ---- the table ------------------------------------------------------------------------------- */

static Thread **bucket_of(pthread_t id) {
    return &threads.buckets[(uintptr_t)id / 4096 % THREAD_BUCKETS];
}

Thread *thread_find(pthread_t id) {
    Thread *t = *bucket_of(id);
    while (t && t->id != id) t = t->next;
    return t && t->state != THREAD_SPARE ? t : NULL;
}

static void thread_enter(Thread *t) {
    M *m = threads_lock();
    Thread **at = bucket_of(t->id);
    t->next = *at;
    *at = t;
    threads_unlock(m);
}

static void thread_strike(Thread *t) {
    M *m = threads_lock();
    Thread **at = bucket_of(t->id);
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    threads_unlock(m);
}

/* ---- a life ---------------------------------------------------------------------------------- */

/* Looked up before main: dlsym takes the loader's lock, which a thread may hold that is waited for
 * by this one's joiner, in a library's constructor. */
static struct {
    void (*tls_destructors)(void);
    const uint32_t *cancel; /* bits, elements, offset */
} life_syms;

static void life_find_syms(void) {
    *(void **)&life_syms.tls_destructors = dlsym(RTLD_DEFAULT, "__call_tls_dtors");
    life_syms.cancel = dlsym(RTLD_DEFAULT, "_thread_db_pthread_cancelhandling");
}

/* Where libc notes in its descriptor that a thread is cancelled or exits. 0: it does not tell. */
static size_t cancel_word(void) { return life_syms.cancel ? life_syms.cancel[2] : 0; }

/* Also an allocator's, which has no destructor here (threadkeys.c). */
static bool is_kept(const struct dl_phdr_info *info) {
    const char *file = strrchr(info->dlpi_name, '/');
    file = file ? file + 1 : info->dlpi_name;
    if (known.allocator && info->dlpi_addr == known.allocator) return true;
    return strncmp(file, "libc.so", 7) == 0 || strncmp(file, "ld-linux", 8) == 0 ||
           strncmp(file, "libgort", 7) == 0;
}

/* Its variables have their place in every thread from the moment when it is opened. */
static bool has_static_place(const struct dl_phdr_info *info) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; d->d_tag != DT_NULL; d++)
            if (d->d_tag == DT_FLAGS) return d->d_un.d_val & DF_STATIC_TLS;
    }
    return false;
}

/* Under a lock of the loader's, which comes behind the one that __tls_get_addr may take: so nothing
 * is asked for. What the loader says is of the modules that were there when the thread last asked
 * it for an address, and for variables with a place nobody asks. Not 0: this thread may have values
 * that are not found. */
static int first_values(struct dl_phdr_info *info, size_t size, void *arg) {
    if (info->dlpi_tls_modid == 0 || is_kept(info)) return 0;
    char *to = info->dlpi_tls_data;
    if (to == NULL) return has_static_place(info);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_TLS) continue;
        __builtin_memcpy(to, (const void *)(info->dlpi_addr + part->p_vaddr), part->p_filesz);
        __builtin_memset(to + part->p_filesz, 0, part->p_memsz - part->p_filesz);
    }
    return 0;
}

/* Of C++ objects, then of keys. An object that a key's destructor has used first of all is gone
 * before the next life, too, and so is what the last round has left. */
static void own_destroyed(void) {
    void (*objects)(void) = life_syms.tls_destructors;
    if (objects) objects();
    for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS && keys_destroy_round(); round++) {}
    if (objects) objects();
    keys_drop();
}

/* T3. False: this body cannot live again. */
static bool life_undone(Thread *t) {
    own_destroyed();
    core->body_over(t->gp);
    signals_end(t);
    bool marked = t->left || cancel_was_noted(t);
    if (life_syms.tls_destructors == NULL || (marked && cancel_word() == 0)) return false;
    if (marked) *(int *)((char *)t->id + cancel_word()) = 0;
    libc(pthread_setcancelstate)(PTHREAD_CANCEL_ENABLE, NULL);
    libc(pthread_setcanceltype)(PTHREAD_CANCEL_DEFERRED, NULL);
    if (dl_iterate_phdr(first_values, NULL) != 0) return false;
    dlerror();
    h_errno = 0;
    set_errno(0);
    return true;
}

static NOINLINE void thread_life(Thread *t) {
    union {
        sigjmp_buf jump;
        __pthread_unwind_buf_t libc; /* which unwinds the thread down to here */
    } start;
    t->result = PTHREAD_CANCELED;
    t->left = true;
    if (__sigsetjmp(start.jump, 0) == 0) {
        __pthread_register_cancel(&start.libc);
        arch_fp_set(t->fp);
        uselocale(LC_GLOBAL_LOCALE); /* as it is now: libc keeps a copy of some of it */
        signals_begin(t, t->first_mask);
        t->result = t->fn(t->arg);
        thread_attend(); /* a handler may leave the thread */
        t->left = false;
    }
    __pthread_unregister_cancel(&start.libc);
}

/* T4, T5. threads.lock. False: the goroutine ends, and the caller tells it. */
static bool spare_locked(Thread *t) {
    t->state = THREAD_SPARE;
    if (t->spent || threads.spares >= SPARES) {
        t->fn = NULL;
        return false;
    }
    t->spare = threads.spare;
    threads.spare = t;
    threads.spares++;
    return true;
}

void lives_begin(void) {
    int own = (int)sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
    if (threads.process == own) return;
    threads.process = own;
    store_rlx(&threads.live, 1);
}

void life_counted(void) {
    if (sub_seq(&threads.live, 1) == 0) gort_sem_release(&all_ended, 1);
}

/* Destructors run with its mask, as it was; what cancels it from here on comes too late. */
static void life_is_over(Thread *t) {
    t->sig.calls = 0;
    store_seq(&t->sig.shut, 1);
    core->body_alone(t->gp, false);
}

/* What it has used of its stack, but for the top: as libc does before it keeps a stack. */
#define STACK_KEPT ((uintptr_t)32 << 10)
static void stack_given_back(Thread *t) {
    uintptr_t lo = (uintptr_t)t->gp->stack->lo, hi = (stack_pointer() & ~PAGE_MASK) - STACK_KEPT;
    if (hi > lo) sys(SYS_madvise, lo, hi - lo, MADV_DONTNEED, 0, 0, 0);
}

static void retire(Thread *t) {
    bool serves = true;
    life_is_over(t);
    t->spent = !life_undone(t) || t->kernel;
    guard_change(t, false);
    stack_given_back(t);
    tid_word_cleared(t);
    name_shown(t, "spare thread");
    int anew = core->body_anew(t->gp);
    M *m = threads_lock();
    t->tid = anew;
    bool detached = t->detached;
    Will *will = t->will;
    t->will = NULL;
    t->kernel = 0;
    t->state = THREAD_ENDED;
    if (detached) serves = spare_locked(t);
    threads_unlock(m);
    if (will) gort_free(will);
    if (!detached) gort_sem_release(&t->over, 1);
    else if (!serves) gort_sem_release(&t->begin, 1);
    life_counted();
}

/* False: it may not have what its maker has asked for, and is none. */
static bool will_accepted(Thread *t) {
    if (t->refused == NULL) return true;
    int r = will_done(t);
    *t->refused = r;
    t->refused = NULL;
    if (r) t->detached = true; /* nobody knows it */
    gort_sem_release(&t->born, 1);
    return r == 0;
}

static void life(Thread *t) {
    cpu_begins(t);
    tid_word_is(t, &t->tid);
    guard_change(t, true);
    if (will_accepted(t)) thread_life(t);
    if (hook_in_child()) libc(pthread_exit)(t->result); /* the child's thread, and libc's */
    retire(t);
}

/* Between two lives it is nobody's, and no dump tells of it. */
static void spare_hidden(Thread *t, bool hidden) {
    M *m = core->enter(); /* preemption changes flags, too */
    if (hidden) t->gp->flags |= GF_SYSTEM;
    else t->gp->flags &= (uint8_t)~GF_SYSTEM;
    core->leave(m);
}

static void shell(void *arg) {
    Thread *t = arg;
    me = t;
    t->id = pthread_self();
    t->gp = runner_g();
    t->tid = core->body_tid(t->gp);
    signals_ready(t);
    name_shown(t, "spare thread");
    thread_enter(t);
    gort_sem_release(&t->born, 1);
    for (;;) {
        spare_hidden(t, true);
        gort_sem_acquire(&t->begin, 1);
        spare_hidden(t, false);
        if (t->fn == NULL) break;
        life(t);
    }
    thread_strike(t);
    gort_free(t);
}

/* ---- begin ----------------------------------------------------------------------------------- */

static Thread *spare_take(size_t stack_size) {
    M *m = threads_lock();
    Thread **at = &threads.spare, *t;
    while ((t = *at) != NULL && t->stack_size != stack_size) at = &t->spare;
    if (t) {
        *at = t->spare;
        threads.spares--;
    }
    threads_unlock(m);
    return t;
}

static Thread *spare_make(size_t stack_size) {
    Thread *t = gort_alloc(sizeof *t);
    if (t == NULL) return NULL;
    *t = (Thread){.stack_size = stack_size};
    gort_attr attr = {.stack_size = stack_size, .thread = 1};
    if (gort_go_with(&attr, shell, t) < 0) {
        gort_free(t);
        return NULL;
    }
    gort_sem_acquire(&t->born, 1);
    return t;
}

/* Its creator's, unless it has one of its own. */
static uint64_t mask_for(const pthread_attr_t *attr) {
    sigset_t set;
    uint64_t mask;
    if (attr == NULL && threads.masked) return threads.mask;
    if (attr == NULL || pthread_attr_getsigmask_np(attr, &set) != 0)
        pthread_sigmask(SIG_BLOCK, NULL, &set);
    __builtin_memcpy(&mask, &set, sizeof mask);
    return mask;
}

/* In its maker. NULL: no memory. */
static Thread *life_made(const pthread_attr_t *attr, int *detached) {
    size_t stack_size = threads.stack_size, guard = threads.guard;
    *detached = PTHREAD_CREATE_JOINABLE;
    if (attr) {
        pthread_attr_getdetachstate(attr, detached);
        pthread_attr_getstacksize(attr, &stack_size);
        pthread_attr_getguardsize(attr, &guard);
    }
    stack_size += guard_extra(guard);
    Thread *t = spare_take(stack_size);
    if (t == NULL) t = spare_make(stack_size);
    if (t) t->guard = guard;
    return t;
}

int life_begin(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg,
               const void *caller) {
    G *creator = runner_g();
    int detached, error;
    Will *will = will_of(attr, &error);
    if (error) return error;
    Thread *t = life_made(attr, &detached);
    if (t == NULL) {
        if (will) gort_free(will);
        return EAGAIN;
    }
    t->fn = fn;
    t->first_mask = mask_for(attr);
    t->fp = arch_fp_get();
    signals_clear(t);
    t->arg = arg;
    t->refused = will ? &error : NULL;
    name_inherited(t);
    add_seq(&threads.live, 1);
    M *m = threads_lock();
    t->will = will;
    t->detached = detached == PTHREAD_CREATE_DETACHED;
    t->awaited = false;
    t->state = THREAD_LIVES;
    threads_unlock(m);
    *id = t->id;
    t->gp->fn = (gort_fn *)(void (*)(void))fn; /* as dumps have it */
    name_shown(t, ""); /* here: its maker may give it a name before it runs */
    t->gp->created_at = (uintptr_t)caller;
    t->gp->parent = creator ? (uint32_t)creator->id : 0;
    gort_sem_release(&t->begin, 1);
    if (will) gort_sem_acquire(&t->born, 1);
    return error;
}

HOOK int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attr,
                        void *(*fn)(void *), void *restrict arg) {
    POINT(pthread_create);
    if (called_by_core()) return libc(pthread_create)(id, attr, fn, arg);
    if (asks_for_real(attr, fn) || !makes_goroutines()) return real_create(id, attr, fn, arg);
    return keeping_frame(life_begin(id, attr, fn, arg, __builtin_return_address(0)));
}

/* ---- join, detach ---------------------------------------------------------------------------- */

/* NULL: not ours. *r: an error, or 0 and the caller is its joiner. */
static Thread *join_begin(pthread_t id, int *r) {
    M *m = threads_lock();
    Thread *t = thread_find(id);
    if (t) *r = t == me ? EDEADLK : t->detached || t->awaited ? EINVAL : 0;
    if (t && *r == 0) t->awaited = true;
    threads_unlock(m);
    return t;
}

static int join_end(Thread *t, int r, void **value) {
    bool serves = true;
    M *m = threads_lock();
    t->awaited = false;
    if (r == 0 && value) *value = t->result;
    if (r == 0 && t != &first_thread) serves = spare_locked(t);
    threads_unlock(m);
    if (!serves) gort_sem_release(&t->begin, 1);
    return r;
}

/* The joiner was cancelled: another may join. */
static void join_given_up(void *t) { join_end(t, EINTR, NULL); }

/* A thread that is the kernel's looks now and then whether it is cancelled: nobody tells it. */
static int join_wait(Thread *t, int64_t deadline) {
    const int64_t pause = 16 * GORT_MS;
    int r;
    pthread_cleanup_push(join_given_up, t);
    do {
        int64_t look = me ? GORT_FOREVER : deadline_after(pause);
        if (me == NULL) libc(pthread_testcancel)();
        r = staying(gort_sem_acquire_until(&t->over, 1, look < deadline ? look : deadline));
    } while (r == -EINTR || (r == -ETIMEDOUT && deadline > gort_now())); /* a signal */
    pthread_cleanup_pop(0);
    return r;
}

bool thread_join(pthread_t id, void **value, int64_t deadline, int *r) {
    if (!as_goroutines()) return false;
    Thread *t = join_begin(id, r);
    if (t == NULL) return false;
    if (*r != 0) return true;
    int got = deadline ? join_wait(t, deadline) : gort_sem_acquire_until(&t->over, 1, 0);
    *r = join_end(t, got == -ETIMEDOUT ? ETIMEDOUT : -got, value);
    return true;
}

HOOK int pthread_join(pthread_t id, void **value) {
    POINT(pthread_join);
    int r;
    if (thread_join(id, value, GORT_FOREVER, &r)) return r;
    if (!here()) return libc(pthread_join)(id, value);
    r = libc(pthread_tryjoin_np)(id, value); /* not TSan's, which counts joins */
    return r == EBUSY ? (int)libc_blocking(pthread_join, id, value, 0, 0, 0, 0) : r;
}

HOOK int pthread_tryjoin_np(pthread_t id, void **value) {
    POINT(pthread_tryjoin_np);
    int r;
    if (!thread_join(id, value, 0, &r)) return libc(pthread_tryjoin_np)(id, value);
    return r == ETIMEDOUT ? EBUSY : r;
}

HOOK int pthread_clockjoin_np(pthread_t id, void **value, clockid_t clock,
                              const struct timespec *at) {
    int r;
    if (at && (!valid_time(at) || !valid_clock(clock))) return EINVAL;
    int64_t deadline = at ? clock_deadline(clock, at) : GORT_FOREVER;
    return thread_join(id, value, deadline, &r) ? r
                                                : libc(pthread_clockjoin_np)(id, value, clock, at);
}
HOOK int pthread_timedjoin_np(pthread_t id, void **value, const struct timespec *at) {
    return pthread_clockjoin_np(id, value, CLOCK_REALTIME, at);
}

/* One that has ended is joined instead: retire is about to tell, and has nothing to do with it
 * afterwards. One that somebody joins is the joiner's. */
HOOK int pthread_detach(pthread_t id) {
    if (!as_goroutines()) return libc(pthread_detach)(id);
    bool ended = false;
    M *m = threads_lock();
    Thread *t = thread_find(id);
    int r = t && t->detached ? EINVAL : 0;
    if (t && r == 0 && !t->awaited) {
        ended = t->awaited = t->state == THREAD_ENDED;
        t->detached = !ended;
    }
    threads_unlock(m);
    if (ended) {
        gort_sem_acquire(&t->over, 1);
        join_end(t, 0, NULL);
    }
    return t ? r : libc(pthread_detach)(id);
}

/* ---- exit ------------------------------------------------------------------------------------ */

HOOK void pthread_exit(void *value) {
    if (me) me->result = value;
    libc(pthread_exit)(value);
    __builtin_unreachable();
}

/* C11's, whose functions in libc are not seen to call these. */
typedef struct C11Start {
    thrd_start_t fn;
    void *arg;
} C11Start;

static void *c11_run(void *arg) {
    C11Start start = *(C11Start *)arg;
    gort_free(arg);
    return (void *)(intptr_t)start.fn(start.arg);
}

HOOK int thrd_create(thrd_t *id, thrd_start_t fn, void *arg) {
    bool stays = asks_for_real(NULL, (void *(*)(void *))(void (*)(void))fn);
    bool libcs = stays || !makes_goroutines();
    if (libcs && !threads_asked_for()) return libc(thrd_create)(id, fn, arg);
    C11Start *start = gort_alloc(sizeof *start);
    if (start == NULL) return thrd_nomem;
    *start = (C11Start){fn, arg};
    pthread_t own;
    int r = libcs ? real_create(&own, NULL, c11_run, start)
                  : life_begin(&own, NULL, c11_run, start, __builtin_return_address(0));
    if (r != 0) {
        gort_free(start);
        return r == ENOMEM ? thrd_nomem : thrd_error;
    }
    *id = own;
    return thrd_success;
}

HOOK int thrd_detach(thrd_t id) { return pthread_detach(id) == 0 ? thrd_success : thrd_error; }

HOOK void thrd_exit(int value) { pthread_exit((void *)(intptr_t)value); }

/* ---- main ------------------------------------------------------------------------------------ */

/* libc's own begin and end of main's thread are not seen: pthread_exit comes here first. */
static void first_ends(void) {
    Thread *t = &first_thread;
    if (!as_goroutines()) libc(pthread_exit)(t->result); /* never begun, or in a child */
    life_is_over(t);
    life_undone(t);
    tid_word_cleared(t);
    M *m = threads_lock();
    t->state = THREAD_ENDED;
    threads_unlock(m);
    gort_sem_release(&t->over, 1);
    life_counted();
    gort_sem_acquire(&all_ended, 1);
    exit(0);
}

int thread_first(int (*fn)(int, char **, char **), int argc, char **argv, char **env) {
    Thread *t = &first_thread;
    volatile int status = 0;
    union {
        sigjmp_buf jump;
        __pthread_unwind_buf_t libc;
    } start;
    t->result = PTHREAD_CANCELED;
    t->left = true;
    if (__sigsetjmp(start.jump, 0) == 0) {
        __pthread_register_cancel(&start.libc);
        status = fn(argc, argv, env);
        t->left = false;
    }
    __pthread_unregister_cancel(&start.libc);
    if (t->left) first_ends();
    return status;
}

/* The others are to be goroutines, and this is one now. */
void thread_first_begins(void) {
    Thread *t = &first_thread;
    life_find_syms();
    t->gp = runner_g();
    t->tid = core->body_tid(t->gp);
    t->state = THREAD_LIVES;
    tid_word_is(t, &t->tid);
    cpu_begins(t);
    lives_begin();
    known.threads = true;
    signals_start();
    signals_ready(t);
    thread_enter(t);
    signals_begin(t, threads.first_mask);
}
