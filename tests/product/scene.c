/* One scene: its players and directors, in two runtimes, and what must be true behind them. */
#include "product.h"
#include "scene.h"
#include "../stress/growth.h"

#include <fcntl.h>
#include <fenv.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>

bool hooked;
int dying, tracing;
static Scene *scene;
static Player players[PLAYERS];
static int directed, quit, round_no; /* atomic */

#ifdef __SANITIZE_ADDRESS__
/* What a goroutine has allocated when it is stopped for good is lost with it, and in a child all
 * of them are stopped. So leaks are looked for where every goroutine comes to its end: by every
 * second seed, since others that end a moment behind main are worth a look as well. */
static pid_t begun_as;
static bool looks_for_leaks(void) {
    bool all_end = getpid() == begun_as && scene->env[ENDING] == E_RETURN && scene->seed & 1;
    if (scene->env[LOOK] == PAGE || scene->env[LOOK] == PROFILED) return false; /* it goes on */
    for (int i = 0; all_end && i < scene->nroles; i++)
        all_end = !(enders[scene->roles[i].ender].word.is & RUNTIME_ENDS);
    return all_end;
}
int __lsan_is_turned_off(void) { return !looks_for_leaks(); }
#else
static bool looks_for_leaks(void) { return false; }
#endif

void wrong(Player *p, const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: runtime %d, player %d, %s: ", file, line, get(&round_no), p->index,
            p->words);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n  its result %ld; begun %d ended %d given %d taken %d\n", p->result,
            get(&p->begun), get(&p->ended), get(&p->given), get(&p->taken));
    _Exit(1);
}

int number_apart(Player *p, int fd) {
    int apart = fcntl(fd, F_DUPFD_CLOEXEC, 300 + 20 * p->index);
    HOLDS(p, apart >= 0);
    close(fd);
    return apart;
}

/* ---- the call -------------------------------------------------------------------------------- */

static bool says_why(Player *p, long r) {
    gort_ctx *used = gort_ctx_used();
    int err = used ? gort_ctx_err(used) : 0;
    bool closed = get(&p->closing) && p->act->close;
    if (r >= 0) return !(p->act->word.is & ENDLESS) && (!p->act->grant || get(&p->granting));
    if (p->must) return false;
    if (p->form == TRY) return r == -EAGAIN || r == -EBUSY;
    if (err != 0 && r == err && ended_by_ctx(p)) return true;
    if (r == -ETIMEDOUT) return p->form == UNTIL && gort_now() >= p->deadline;
    return closed && r == p->act->closed;
}

/* The goroutine is as it was, whatever the call has done. */
static void call(Player *p) {
    uint64_t id = gort_id();
    int number = 4000 + p->index, rounding = fegetround();
    gort_ctx *mine = p->ctx, *before = mine ? gort_ctx_use(mine) : NULL;
    gort_ctx *used = gort_ctx_used();
    set(&p->begun, 1);
    errno = number;
    long r = p->act->call(p);
    int now = errno;
    p->result = r;
    if (!says_why(p, r)) WRONG(p, "%ld is no result of this call", r);
    if (!(p->act->word.is & OWN_ERRNO) && now != number) WRONG(p, "errno is %d now", now);
    if (gort_id() != id) WRONG(p, "goroutine %d has become %d", (int)id, (int)gort_id());
    HOLDS(p, fegetround() == rounding);
    HOLDS(p, gort_ctx_used() == used);
    if (mine) HOLDS(p, gort_ctx_use(before) == mine);
    set(&p->ended, 1);
}

void wear(Player *p) {
    int mine = p->worn++;
    if (mine == p->nwraps) call(p);
    else p->wraps[mine]->play(p);
    p->worn = mine;
}

/* ---- the director ---------------------------------------------------------------------------- */

static void lets_wait(Player *p) {
    /* not at all, for some turns, or for a while */
    unsigned how = p->seed >> 5 & 7;
    for (unsigned i = 0; i < how; i++) test_pause(how < 3 ? 0 : 60);
}

static void settle(Player *p) {
    p->act->settle(p);
    gort_ctx_release(p->ctx);
    gort_ctx_release(p->parent);
    p->ctx = p->parent = NULL;
}

static bool by_ctx(const Player *p) { return p->ctx != NULL || (p->ender->word.wants & IN_GROUP); }

static void directs(void *arg) {
    Player *p = arg;
    p->act->make(p);
    p->ender->before(p);
    p->brief = !by_ctx(p) || (p->seed >> 15 & 1);
    p->start->play(p);
    set(&p->go, 1);
    wait_until(get(&p->begun));
    lets_wait(p);
    if (p->ender->word.is & RUNTIME_ENDS) {
        p->noise->play(p);
        add(&directed, 1);
        return;
    }
    p->noise->play(p);
    bool ctx = by_ctx(p);
    p->ender->during(p);
    if (ctx && !p->must && p->form != TRY && p->act->grant && !ended_by_ctx(p)) {
        lets_wait(p);
        if (!get(&p->granting)) HOLDS(p, !get(&p->ended));
        grant(p);
    }
    wait_until(get(&p->left));
    settle(p);
    add(&directed, 1);
}

static void *directs_thread(void *arg) {
    directs(arg);
    return NULL;
}

/* ---- the rest of the scene ------------------------------------------------------------------- */

static volatile uint64_t spun;
static void spins(void *arg) {
    while (!get(&quit)) {
        for (int64_t until = gort_now() + 12 * GORT_MS; gort_now() < until;) spun++;
        gort_sleep(5 * GORT_MS);
    }
}
static void idles(void *arg) {
    while (!get(&quit)) gort_sleep(5 * GORT_MS);
}
static void *calls_now_and_then(void *arg) {
    gort_mutex *mu = arg;
    while (!get(&quit)) {
        gort_mutex_lock(mu);
        gort_mutex_unlock(mu);
        usleep(100);
    }
    return NULL;
}
static gort_mutex crowd_mutex;
static void crowd(void) {
    pthread_t t;
    switch (scene->env[CROWD]) {
    case 1:
        for (int i = 0; i < 2; i++) CHECK_EQ(gort_go(spins, NULL), 0);
        break;
    case 2:
        for (int i = 0; i < 300; i++) CHECK_EQ(gort_go(idles, NULL), 0);
        break;
    case 3:
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(pthread_create(&t, NULL, calls_now_and_then, &crowd_mutex), 0);
            pthread_detach(t);
        }
        break;
    default: break;
    }
}

/* Requests to the live page, on its unix address, each read for a while. */
static void *asks_page(void *arg) {
    static const char *const paths[] = {"debug/pprof/profile?seconds=1&token=t",
                                        "debug/pprof/block?seconds=1&token=t",
                                        "debug/pprof/mutex?seconds=1&token=t",
                                        "trace?seconds=1&token=t",
                                        "goroutines?format=json",
                                        "metrics",
                                        "leaks?minutes=0",
                                        "debug/pprof/created",
                                        "debug/pprof/goroutine?format=folded",
                                        "events"};
    uint64_t seed = scene->seed;
    while (!get(&quit)) {
        uint64_t r = test_random(&seed) >> 4;
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        struct timeval patience = {0, 1000 + (int)(r >> 8) % 20000};
        char buf[4000];
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int len = snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "product-page-%d", getpid());
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (connect(fd, (struct sockaddr *)&un,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0) {
            unsigned which = scene->env[LOOK] == PROFILED ? r % 3 : r % 10;
            len = snprintf(buf, sizeof buf, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                           paths[which]);
            if (send(fd, buf, (size_t)len, MSG_NOSIGNAL) == len)
                for (int i = 0; i < 4 && read(fd, buf, sizeof buf) > 0; i++) continue;
        } else {
            usleep(500);
        }
        close(fd);
    }
    return NULL;
}

static void prepare(Player *p, int index, const Role *role, uint64_t *seed) {
    *p = (Player){.index = index, .fd = {-1, -1}, .hour = 3600 * GORT_SEC};
    p->seed = test_random(seed);
    p->token = 1000 + (long)(test_random(seed) % 1000);
    p->start = &starts[role->start];
    p->act = &acts[role->act];
    p->ender = &enders[role->ender];
    p->noise = &noises[role->noise];
    p->leave = &leaves[role->leave];
    for (int i = 0; i < WRAPS; i++)
        if (role->wraps[i] >= 0) p->wraps[p->nwraps++] = &wraps[role->wraps[i]];
    role_words(role, p->words, sizeof p->words);
}

static void end_program(int how) {
    set(&dying, 1);
    switch (how) {
    case E_EXIT: exit(7);
    case E_INT: kill(getpid(), SIGINT); break;
    case E_TERM: kill(getpid(), SIGTERM); break;
    case E_ABORT: abort();
    case E_SEGV: *(volatile int *)8 = 1; break;
    case E_QUIT: kill(getpid(), SIGQUIT); break;
    default: return;
    }
    for (;;) gort_sleep(GORT_SEC);
}

static int body(int argc, char **argv) {
    uint64_t seed = scene->seed + (uint64_t)get(&round_no) * 77;
    pthread_t t;
    CHECK_EQ(gort_id(), 1);
    crowd();
    int others = gort_count();
    for (int i = 0; i < scene->nroles; i++) prepare(&players[i], i, &scene->roles[i], &seed);
    for (int i = 0; i < scene->nroles; i++) {
        if (scene->env[DIRECTOR] == 0) CHECK_EQ(gort_go(directs, &players[i]), 0);
        else CHECK_EQ(pthread_create(&t, NULL, directs_thread, &players[i]), 0);
        if (scene->env[DIRECTOR] != 0) pthread_detach(t);
    }
    uint64_t r = test_random(&seed) >> 8;
    if (scene->env[ENDING] != E_RETURN) {
        int wanted = (int)(r % (unsigned)(scene->nroles + 1));
        wait_until(get(&directed) >= wanted);
        end_program(scene->env[ENDING]);
    }
    wait_until(get(&directed) == scene->nroles);
    if (looks_for_leaks()) wait_until(gort_count() <= others);
    return 0;
}

/* What the end of the runtime has left of those that were in the middle. */
static void after_end(void) {
    for (int i = 0; i < scene->nroles; i++) {
        Player *p = &players[i];
        if (!(p->ender->word.is & RUNTIME_ENDS)) continue;
        set(&p->over, 1);
        settle(p);
    }
}

static void tells_time(int signo) {
    int before = errno;
    if (gort_now() <= 0) abort();
    gort_id();
    errno = EXDEV;
    errno = before;
}
static void handle(int signo, int flags) {
    struct sigaction sa = {.sa_handler = tells_time, .sa_flags = flags};
    CHECK_EQ(sigaction(signo, &sa, NULL), 0);
}
static void handles_fault(int signo) { _exit(9); }

/* Of a player that the end took between the start of its trace and the stop. The start is a
 * blocking call: it may be over a moment after the runtime. */
static void end_traces(void) {
#ifndef LEAN
    for (int i = 0; get(&tracing) > 0 && gort_trace_stop() != 0 && i < 500; i++) usleep(2000);
    set(&tracing, 0);
#endif
}

int scene_play(Scene *s) {
    static Growth growth;
    pthread_t page;
    bool asked = s->env[LOOK] == PAGE || s->env[LOOK] == PROFILED;
    scene = s;
#ifdef __SANITIZE_ADDRESS__
    begun_as = getpid();
#endif
    hooked = getenv("PRODUCT_HOOKED") != NULL;
    growth_begin();
    handle(SIGUSR1, SA_RESTART | SA_ONSTACK);
    handle(SIGUSR2, SA_ONSTACK);
    if (s->env[HANDLER] == 1) {
        struct sigaction sa = {.sa_handler = handles_fault, .sa_flags = SA_ONSTACK};
        sigaction(SIGSEGV, &sa, NULL);
        sigaction(SIGABRT, &sa, NULL);
    }
    if (asked) CHECK_EQ(pthread_create(&page, NULL, asks_page, NULL), 0);
    for (int i = 1; i <= ROUNDS; i++) {
        set(&round_no, i);
        set(&directed, 0);
        CHECK_EQ(gort_main(body, 0, NULL), 0);
        CHECK_EQ(gort_count(), 0);
        after_end();
        end_traces();
        if (!asked) growth_look(&growth, 1 + 2 + (s->env[CROWD] == 3 ? 2 * i : 0), NULL);
    }
    set(&quit, 1);
    if (asked) pthread_join(page, NULL);
    printf("played\n");
    return 0;
}
