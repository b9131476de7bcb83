/* What ends a wait, and what goes on meanwhile. */
#include "product.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

/* ---- what ends it ---------------------------------------------------------------------------- */

bool ended_by_ctx(const Player *p) {
    if (p->act->word.is & NUMBERED) return hooked && !(p->start->is & PLAIN);
    return (p->act->word.is & BY_CTX) || p->form == UNTIL;
}

void grant(Player *p) {
    if (get(&p->granting) || !p->act->grant) return;
    set(&p->granting, 1);
    p->act->grant(p);
}
static void nothing(Player *p) {}

static void until(Player *p, int64_t deadline) {
    p->form = UNTIL;
    p->deadline = deadline;
}
static void before_far(Player *p) { until(p, gort_now() + p->hour); }
static void before_deadline(Player *p) {
    until(p, gort_now() + (int64_t)(p->seed >> 20) % 3000 * GORT_US);
}
static void before_past(Player *p) { until(p, p->seed % 2 ? 0 : gort_now() - 1); }
static void before_try(Player *p) { p->form = TRY; }
static void before_ready(Player *p) {
    p->must = true;
    grant(p);
}
static void before_ready_past(Player *p) {
    before_past(p);
    before_ready(p);
}
static void before_ready_try(Player *p) {
    before_try(p);
    before_ready(p);
}

/* A form that a context ends, where there is one. */
static void use(Player *p, gort_ctx *ctx) {
    HOLDS(p, ctx != NULL);
    p->ctx = ctx;
    if ((p->act->word.is & HAS_UNTIL) && (!(p->act->word.is & BY_CTX) || p->seed >> 13 & 1))
        until(p, GORT_FOREVER);
}
static void before_ctx(Player *p) { use(p, gort_ctx_new(NULL)); }
static void before_value(Player *p) {
    p->parent = gort_ctx_new(NULL);
    use(p, gort_ctx_with_value(p->parent, p, p));
    HOLDS(p, gort_ctx_value(p->ctx, p) == p);
}
static void before_timeout(Player *p) {
    use(p, gort_ctx_with_timeout(NULL, (int64_t)(p->seed >> 20) % 3000 * GORT_US));
}
static void before_done(Player *p) {
    before_ctx(p);
    gort_ctx_cancel(p->ctx);
}
static void before_done_ready(Player *p) {
    before_done(p);
    before_ready(p);
}
static void before_done_try(Player *p) {
    before_done(p);
    before_try(p);
}
static void before_done_ready_try(Player *p) {
    before_done_try(p);
    before_ready(p);
}
static void before_expired_ready(Player *p) {
    use(p, gort_ctx_with_deadline(NULL, gort_now() - 1));
    before_ready(p);
}
static void before_race(Player *p) {
    p->ctx = gort_ctx_new(NULL);
    HOLDS(p, p->ctx != NULL);
    before_deadline(p);
}

static void cancel(Player *p) { gort_ctx_cancel(p->ctx); }
static void cancel_cause(Player *p) { gort_ctx_cancel_cause(p->ctx, -EXDEV); }
static void cancel_parent(Player *p) { gort_ctx_cancel(p->parent); }
static void release_ctx(Player *p) {
    gort_ctx_release(p->ctx); /* the use keeps it */
    p->ctx = NULL;
}
static void close_it(Player *p) {
    set(&p->closing, 1);
    p->act->close(p);
}
static void fail_sibling(Player *p) { set(&p->closing, 1); }
static void before_sibling(Player *p) {
    if (p->act->word.is & HAS_UNTIL) until(p, GORT_FOREVER);
}
static void race(Player *p) {
    if (p->seed >> 14 & 1) cancel(p);
    grant(p);
    if (!(p->seed >> 14 & 1)) cancel(p);
}

const Ender enders[] = {
    {{.name = "self", .is = LINGERS, .refuses = GRANTED | ENDLESS}, nothing, nothing},
    {{.name = "granted", .is = LINGERS, .wants = GRANTED}, nothing, grant},
    {{.name = "granted_until", .is = LINGERS, .wants = GRANTED | HAS_UNTIL}, before_far, grant},
    {{.name = "ready", .wants = GRANTED | READY}, before_ready, nothing},
    {{.name = "ready_past", .wants = GRANTED | READY | HAS_UNTIL}, before_ready_past, nothing},
    {{.name = "ready_try", .wants = GRANTED | READY | HAS_TRY}, before_ready_try, nothing},
    {{.name = "past", .wants = HAS_UNTIL}, before_past, nothing},
    {{.name = "try", .wants = HAS_TRY}, before_try, nothing},
    {{.name = "deadline", .is = LINGERS, .wants = HAS_UNTIL}, before_deadline, nothing},
    {{.name = "cancel", .is = LINGERS}, before_ctx, cancel},
    {{.name = "cause", .is = LINGERS}, before_ctx, cancel_cause},
    {{.name = "timeout", .is = LINGERS}, before_timeout, nothing},
    {{.name = "parent", .is = LINGERS}, before_value, cancel_parent},
    {{.name = "release", .is = LINGERS}, before_ctx, release_ctx},
    {{.name = "done"}, before_done, nothing},
    {{.name = "done_ready", .wants = GRANTED | READY}, before_done_ready, nothing},
    {{.name = "expired_ready", .wants = GRANTED | READY}, before_expired_ready, nothing},
    {{.name = "done_try", .wants = HAS_TRY}, before_done_try, nothing},
    {{.name = "done_ready_try", .wants = GRANTED | READY | HAS_TRY},
     before_done_ready_try,
     nothing},
    {{.name = "close", .is = LINGERS, .wants = CLOSES}, nothing, close_it},
    {{.name = "sibling", .is = LINGERS, .wants = IN_GROUP}, before_sibling, fail_sibling},
    {{.name = "race", .is = LINGERS, .wants = HAS_UNTIL | GRANTED}, before_race, race},
    {{.name = "end", .is = LINGERS | RUNTIME_ENDS, .refuses = PLAIN | DIRECTS}, nothing, nothing},
    {{.name = NULL}, NULL, NULL},
};

/* ---- children -------------------------------------------------------------------------------- */

static long reaps(void *arg) {
    int status = -1;
    pid_t pid = (pid_t)(intptr_t)arg, r;
    do r = waitpid(pid, &status, 0);
    while (r < 0 && errno == EINTR);
    return r == pid ? status : -1;
}
static void reap(Player *p, pid_t pid, const char *what) {
    void *arg = (void *)(intptr_t)pid;
    /* with the hook a context would end the wait; one below it keeps it meanwhile */
    gort_ctx *used = gort_ctx_used(), *keeps = used ? gort_ctx_new(used) : NULL;
    gort_ctx_use(NULL);
    long status = p->seed >> 12 & 1 ? gort_blocking(reaps, arg) : reaps(arg);
    gort_ctx_use(used);
    gort_ctx_release(keeps);
    if (status != 0) WRONG(p, "%s ends with status %lx", what, status);
}

/* A child of a runtime has none: nothing waits, nothing happens, and libc works. */
static void lives(uint64_t r) {
    long v = 0;
#ifdef __SANITIZE_ADDRESS__
    _exit(0); /* a thread that is not here may have its allocator's lock for ever */
#endif
    alarm(100);
    gort_chan *c = gort_chan_new(sizeof v, 1);
    if (gort_chan_recv(c, &v) != -ENOTCONN) _exit(11);
    if (gort_sleep(GORT_SEC * 100) != -ENOTCONN && gort_now() == 0) _exit(12);
    if (gort_count() != -ENOTCONN) _exit(13);
    if (gort_go((gort_fn *)abort, NULL) != -ENOTCONN) _exit(14);
    gort_yield();
    free(malloc(1000));
    FILE *f = fopen("/dev/null", "w");
    if (f == NULL || fprintf(f, "%g\n", 1.5) < 0 || fclose(f) != 0) _exit(15);
    if (r & 1) execl("/bin/true", "true", NULL);
    if (r & 2) {
        pid_t pid = fork();
        if (pid == 0) _exit(0);
        if (pid < 0 || reaps((void *)(intptr_t)pid) != 0) _exit(16);
    }
    if (r & 4) exit(0);
    _exit(0);
}
void fork_child(Player *p, uint64_t r) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) lives(r);
    if (pid < 0) WRONG(p, "fork: %s", strerror(errno));
    reap(p, pid, "a forked child");
}

extern char **environ;
void exec_child(Player *p) {
    char *args[] = {"true", NULL};
    pid_t pid;
    if (p->seed >> 11 & 1) {
        HOLDS(p, posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ) == 0);
    } else {
        pid = vfork();
        if (pid == 0) {
            execve("/bin/true", args, environ);
            _exit(9);
        }
    }
    if (pid < 0) WRONG(p, "vfork: %s", strerror(errno));
    reap(p, pid, "a program");
}

/* ---- noises ---------------------------------------------------------------------------------- */

static void stops_world(Player *p) {
    for (int i = 0; i < 3; i++) {
        gort_stop_world();
        gort_start_world();
    }
}
static void changes_procs(Player *p) {
    int n = gort_maxprocs(0);
    gort_maxprocs(1 + (int)(p->seed >> 9) % 6);
    test_pause(60);
    gort_maxprocs(n);
}
static void dumps(Player *p) {
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 3; i++) gort_dump(fd);
    close(fd);
}
static void asks_figures(Player *p) {
    gort_stats s;
    for (int i = 0; i < 20; i++) gort_stats_read(&s);
    HOLDS(p, s.goroutines >= 1);
}
#ifndef LEAN
static void traces(Player *p) {
    add(&tracing, 1);
    int r = gort_trace_start(p->seed % 2 ? "noise.json" : "noise.pftrace");
    HOLDS(p, r == 0 || r == -EBUSY);
    test_pause(60);
    if (r == 0) HOLDS(p, gort_trace_stop() == 0 || get(&dying));
    add(&tracing, -1);
}
#endif
static void forks(Player *p) { fork_child(p, p->seed >> 30); }
static void execs(Player *p) { exec_child(p); }
static void sends(int signo) {
    for (int i = 0; i < 5; i++) {
        kill(getpid(), signo);
        test_pause(60);
    }
}
static void handled(Player *p) { sends(SIGUSR1); }
static void interrupts(Player *p) { sends(SIGUSR2); }
static void urges(Player *p) { sends(SIGURG); }
/* A signal to every thread, whatever it is in. */
static void to_threads(Player *p) {
    DIR *d = opendir("/proc/self/task");
    HOLDS(p, d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (atoi(e->d_name) > 0) tgkill(getpid(), atoi(e->d_name), SIGUSR1);
    closedir(d);
}
/* As ^Z and fg: calls that sleep in the kernel are interrupted. */
static void job_control(Player *p) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        kill(getppid(), SIGSTOP);
        usleep(1000);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    reap(p, pid, "who stops us");
}
static void bumps(void *arg) { add((int *)arg, 1); }
static void crowds(Player *p) {
    int done = 0, n = 0;
    for (; n < 100; n++) HOLDS(p, gort_go(bumps, &done) == 0);
    wait_until(get(&done) == n);
}
static void *makes(void *arg) { return malloc(32); }
static int dropped;
static void drops(void *object) {
    add(&dropped, 1);
    free(object);
}
static void pools(Player *p) {
    gort_pool *pool = gort_pool_new(makes, drops, NULL);
    void *o[20];
    int before = get(&dropped);
    for (int i = 0; i < 20; i++) HOLDS(p, (o[i] = gort_pool_get(pool)) != NULL);
    for (int i = 0; i < 20; i++) gort_pool_put(pool, o[i]);
    gort_pool_free(pool);
    HOLDS(p, get(&dropped) >= before + 20);
}
static void opens(Player *p) {
    for (int i = 0; i < 30; i++) {
        int fd[2];
        HOLDS(p, pipe2(fd, O_CLOEXEC) == 0);
        HOLDS(p, gort_write(fd[1], "x", 1) == 1 && gort_close(fd[1]) == 0);
        HOLDS(p, gort_close(fd[0]) == 0);
    }
}
static void *visits(void *arg) {
    Player *p = arg;
    HOLDS(p, gort_id() == 0);
    gort_mutex mu = {0};
    gort_mutex_lock(&mu);
    HOLDS(p, gort_mutex_lock_until(&mu, gort_now() + GORT_MS) == -ETIMEDOUT);
    return NULL;
}
static long joins(void *arg) { return pthread_join(*(pthread_t *)arg, NULL); }
static void visited(Player *p) {
    pthread_t t;
    HOLDS(p, pthread_create(&t, NULL, visits, p) == 0);
    HOLDS(p, gort_blocking(joins, &t) == 0);
}

const Word noises[] = {
    {.name = "none", .play = nothing},
    {.name = "world", .refuses = DIRECTS, .play = stops_world},
    {.name = "maxprocs", .play = changes_procs},
    {.name = "dump", .play = dumps},
    {.name = "stats", .play = asks_figures},
#ifndef LEAN
    {.name = "trace", .play = traces},
#endif
    {.name = "fork", .is = OS, .play = forks},
    {.name = "exec", .is = OS, .play = execs},
    {.name = "handled", .is = OS, .play = handled},
    {.name = "interrupted", .is = OS, .play = interrupts},
    {.name = "urged", .is = OS, .play = urges},
    {.name = "threads", .is = OS, .play = to_threads},
    {.name = "stopped", .is = OS, .play = job_control},
    {.name = "crowd", .play = crowds},
    {.name = "pool", .play = pools},
    {.name = "opens", .play = opens},
    {.name = "visitor", .is = OS, .play = visited},
    {.name = NULL},
};
