/* One scene: its players and directors in this process, and what must be true behind them. */
#include "scene.h"

#include <sys/wait.h>

__thread Player *volatile me;
int quit, leaving;
static int directed; /* atomic: directors that have done their work */
static Scene *scene;
static Player players[PLAYERS];
static pthread_key_t end_key;
static pid_t begun_as;

void wrong(Player *p, const char *file, int line, const char *what, long value) {
    while (get(&leaving)) pause();
    fprintf(stderr, "%s:%d: %s: not so: %s (%ld)\n", file, line, p ? p->words : "background", what,
            value);
    if (p)
        fprintf(
            stderr,
            "  begun %d granting %d returned %d ended %d error %d handled %d, %d hard, jumped %d "
            "open %d queued %d of %d\n",
            get(&p->begun), get(&p->granting), get(&p->returned), get(&p->ended), get(&p->error),
            get(&p->handled), get(&p->hard), get(&p->jumped), get(&p->open), get(&p->queue_got),
            get(&p->queued));
    _exit(99);
}

void nap(int us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    if (us < 100) sched_yield();
    while (nanosleep(&t, &t) != 0) {}
}
pthread_t helper(void *(*fn)(void *), void *arg) {
    pthread_t t;
    IS(NULL, pthread_create(&t, NULL, fn, arg), 0);
    return t;
}
void finish(pthread_t t) { IS(NULL, pthread_join(t, NULL), 0); }
int ends_child(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) != pid) IS(NULL, errno, EINTR);
    return status;
}

/* ---- signals --------------------------------------------------------------------------------- */

static void always(sigset_t *set) { /* comes to any thread */
    sigdelset(set, SIGTERM);
    sigdelset(set, SIGQUIT);
    sigdelset(set, SIGABRT);
    sigdelset(set, SIGSEGV);
    sigdelset(set, SIGBUS);
    sigdelset(set, SIGURG); /* sigsetjmp does not save it under gort-run: docs/threads.md */
}
void players_mask(sigset_t *set) {
    sigfillset(set);
    always(set);
    for (int s = SIG_JUMPS; s <= SIG_STOPS; s++) sigdelset(set, s);
    sigdelset(set, SIG_INTERRUPTS);
    sigdelset(set, SIG_RESTARTS);
    sigdelset(set, SIGALRM);
}
void block_all(void) {
    sigset_t set;
    sigfillset(&set);
    always(&set);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
}

static void handles(int signo, siginfo_t *info, void *context) {
    Player *p = me;
    if (!p) return;
    if (signo == SIG_INTERRUPTS) add(&p->hard, 1);
    if (signo == SIG_QUEUED) add(&p->queue_got, info->si_value.sival_int);
    add(&p->handled, 1);
}
static void jumps(int signo, siginfo_t *info, void *context) {
    Player *p = me;
    add(&p->handled, 1);
    if (!p->jumps) return;
    p->jumps = 0;
    siglongjmp(p->back, 1);
}
static void wears(int signo, siginfo_t *info, void *context) { wear(me); }
static void stops(int signo, siginfo_t *info, void *context) {
    Player *p = me;
    int err = errno, n = add(&p->stopped, 1);
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, SIG_RESUMES);
    while (get(&p->resume) < n) sigsuspend(&set);
    add(&p->handled, 1);
    errno = err;
}
static void handle(int signo, void (*fn)(int, siginfo_t *, void *), int flags) {
    struct sigaction act = {.sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags};
    if (fn != wears) sigfillset(&act.sa_mask);
    IS(NULL, sigaction(signo, &act, NULL), 0);
}
static void handle_all(void) {
    handle(SIG_INTERRUPTS, handles, 0);
    handle(SIG_RESTARTS, handles, SA_RESTART);
    handle(SIGALRM, handles, SA_RESTART);
    handle(SIG_QUEUED, handles, SA_RESTART);
    handle(SIG_JUMPS, jumps, SA_RESTART);
    handle(SIG_STOPS, stops, SA_RESTART);
    handle(SIG_RESUMES, handles, SA_RESTART);
    handle(SIG_WEARS, wears, SA_RESTART | SA_NODEFER | SA_ONSTACK);
}

/* ---- the player ------------------------------------------------------------------------------ */

bool ends_in_call(const Player *p) {
    return !(p->all & REFUSES) && ((p->act->word.is & POINT) || (p->all & ASYNC));
}

/* EINTR needs a handler that has run, and one without SA_RESTART where the call knows of it. */
static void allows_eintr(Player *p, int hard) {
    HOLDS(p, p->act->word.is & (INTR | SIGNALS));
    /* a signal of the process's that another thread has taken then, or a tracer, has woken it */
    bool others = backs[scene->env[BACK]].is & SIGNALS || scene->env[UNDER];
    if (p->act->word.is & ALWAYS || (p->timed && p->act->word.is & TIMED))
        HOLDS(p, get(&p->handled) > 0 || others); /* eintr_repair.c: or an earlier one */
    else HOLDS(p, get(&p->hard) > hard);
}
static void deadline(Player *p) {
    p->begins = now_ns(CLOCK_MONOTONIC);
    p->mono = from_ns(p->begins + p->wait_ns);
    p->real = from_ns(now_ns(CLOCK_REALTIME) + p->wait_ns);
}
static void calls(Player *p) {
    for (int r = EINTR; r != 0;) {
        int hard = get(&p->hard);
        r = p->act->call(p);
        if (r == EINTR) {
            allows_eintr(p, hard);
            if (!p->interrupts || get(&p->hard) == hard) continue;
            p->forever = false;
            set(&p->error, EINTR);
        } else if (r == ETIMEDOUT) {
            HOLDS(p, p->timed && now_ns(CLOCK_MONOTONIC) >= p->begins + p->wait_ns - 300000);
            IS(p, get(&p->granting), 0);
            set(&p->timedout, 1);
            break;
        } else IS(p, r, 0);
    }
}
static void same_mask(Player *p, const sigset_t *was) {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    for (int s = 1; s <= SIGRTMAX; s++)
        if (sigismember(was, s) != sigismember(&now, s)) WRONG(p, "the mask", s);
}

/* The thread is what it was, whatever the call has done. */
static void call(Player *p) {
    pthread_t self = pthread_self();
    pid_t tid = gettid();
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    deadline(p);
    set(&p->begun, 1);
    if (p->ender->is & JUMPS) {
        if (sigsetjmp(p->back, 1) == 0) {
            p->jumps = 1;
            while (p->act->call(p) == EINTR) {}
            HOLDS(p, 0);
        }
        p->forever = false;
        set(&p->jumped, 1);
    }
    calls(p);
    set(&p->returned, 1);
    same_mask(p, &mask);
    HOLDS(p, me == p && pthread_equal(self, pthread_self()) && tid == gettid());
    HOLDS(p, pthread_equal(self, p->thread));
    if ((p->all & ENDING) == 0) HOLDS(p, pthread_getspecific(end_key) == p);
    bool alone = !(p->act->word.is & GRANTED) || get(&p->timedout);
    if (alone && !(p->all & CANCELS)) wait_until(get(&p->directed));
    if (p->all & GRANTED && !get(&p->timedout)) HOLDS(p, get(&p->granting));
}

void wear(Player *p) {
    int mine = p->worn++;
    if (mine == p->nwraps) call(p);
    else p->wraps[mine]->play(p);
    p->worn = mine;
}

static void body_off(void *p) { add(&((Player *)p)->open, -1); }
static void key_ends(void *arg) { /* in the last round */
    Player *p = arg;
    if (++p->rounds < 4) pthread_setspecific(end_key, p);
    else set(&p->ended, 1);
}
static void plays(Player *p) {
    char inside;
    sigset_t mask;
    me = p;
    p->text = &inside;
    p->thread = pthread_self();
    IS(p, pthread_setspecific(end_key, p), 0);
    players_mask(&mask);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    set(&p->known, 1);
    add(&p->open, 1);
    pthread_cleanup_push(body_off, p);
    wear(p);
    if (p->all & CANCELS)
        for (;;) pthread_testcancel();
    p->leave->play(p);
    pthread_cleanup_pop(1);
}
void *player_body(void *arg) {
    plays(arg);
    return arg;
}
int player_c11(void *arg) {
    plays(arg);
    return 17;
}

/* ---- the director ---------------------------------------------------------------------------- */

static void lets_wait(Player *p) {
    unsigned how = pick(p, 40, 8);
    for (unsigned i = 0; i < how; i++) nap(how < 4 ? 0 : 300);
}

static void joins(Player *p) {
    void *value;
    int result;
    wait_until(get(&p->ended));
    bool canceled = p->all & CANCELS || strcmp(p->leave->name, "cancel") == 0;
    if (p->joined) return;
    if (p->all & C11) {
        IS(p, thrd_join(p->c11, &result), thrd_success);
        IS(p, result, canceled ? -1 : 17);
    } else {
        IS(p, pthread_join(p->thread, &value), 0);
        HOLDS(p, value == (canceled ? PTHREAD_CANCELED : (void *)p));
    }
}

static void directs_player(Player *p) {
    bool early = p->all & EARLY;
    p->act->make(p);
    if (early) p->ender->play(p);
    p->start->play(p);
    wait_until(get(&p->begun));
    lets_wait(p);
    p->noise->play(p);
    if (!early) p->ender->play(p);
    set(&p->directed, 1);
    if (p->all & NEVER) return;
    joins(p);
    IS(p, get(&p->open), 0);
    IS(p, get(&p->queue_got), get(&p->queued));
    p->act->settle(p);
}

typedef struct Member {
    Player *p;
    int i;
} Member;
static void *member(void *arg) {
    Member *m = arg;
    m->p->crowd->member(m->p, m->i);
    if (pick(m->p, 50 + (unsigned)m->i, 3) == 0) pthread_exit(m);
    return m;
}
static void directs_crowd(Player *p) {
    static Member all[PLAYERS][MEMBERS];
    Member *mine = all[p->index];
    p->crowd->make(p);
    for (int i = 0; i < p->n; i++) {
        pthread_attr_t attr;
        mine[i] = (Member){p, i};
        pthread_attr_init(&attr);
        if (pick(p, 70 + (unsigned)i, 2)) pthread_attr_setstacksize(&attr, 256 << 10);
        IS(p, pthread_create(&p->members[i], &attr, member, &mine[i]), 0);
        pthread_attr_destroy(&attr);
    }
    p->noise->play(p);
    for (int i = 0; i < p->n; i++) {
        void *value;
        IS(p, pthread_join(p->members[i], &value), 0);
        HOLDS(p, value == &mine[i]);
    }
    p->crowd->settle(p);
}
static void *directs(void *arg) {
    Player *p = arg;
    if (p->crowd) directs_crowd(p);
    else directs_player(p);
    add(&directed, 1);
    while (p->all & NEVER) nap(1000000); /* with what is its own */
    return NULL;
}

/* ---- the process ----------------------------------------------------------------------------- */

static void exits(int status, void *arg) {
    if (getpid() == begun_as && status == 6) _exit(7);
}
static void exits_quick(void) { _exit(7); }

static void *in_background(void *word) {
    ((const Word *)word)->play(NULL);
    return NULL;
}

static void cast(Player *p, int i) {
    const Role *r = &scene->roles[i];
    uint64_t s = scene->seed + (uint64_t)i;
    p->index = i;
    p->seed = draw_from(&s);
    p->noise = &noises[r->noise];
    role_words(r, p->words, sizeof p->words);
    if (r->crowd >= 0) {
        p->crowd = &crowds[r->crowd];
        p->n = r->n;
        return;
    }
    p->start = &starts[r->start];
    p->act = &acts[r->act];
    p->ender = &enders[r->ender];
    p->leave = &leaves[r->leave];
    p->all = p->start->is | p->act->word.is | p->ender->is | p->noise->is | p->leave->is;
    for (int w = 0; w < WRAPS; w++)
        if (r->wraps[w] >= 0) {
            p->wraps[p->nwraps++] = &wraps[r->wraps[w]];
            p->all |= wraps[r->wraps[w]].is;
        }
    bool out = strcmp(p->ender->name, "timeout") == 0;
    p->interrupts = strcmp(p->ender->name, "interrupt") == 0;
    bool cancels = strcmp(p->ender->name, "cancel") == 0 && ends_in_call(p);
    p->forever = p->interrupts || p->ender->is & (JUMPS | NEVER) || cancels;
    p->timed = out || (p->act->word.is & TIMED && pick(p, 41, 2));
    p->wait_ns = out ? 1000000 + pick(p, 42, 4000000) : 3600 * INT64_C(1000000000);
}

static void *quits(void *arg) { /* when all have ended */
    wait_until(get(&directed) == scene->nroles);
    if (ends[scene->env[END]].is & ALL_END)
        nap(2000); /* the last: main's end is not the process's */
    printf("played\n");
    fflush(stdout);
    set(&quit, 1);
    return NULL;
}

int scene_play(Scene *s) {
    pthread_t back;
    scene = s;
    const Word *end = &ends[s->env[END]], *behind = &backs[s->env[BACK]];
    begun_as = getpid();
    block_all();
    handle_all();
    IS(NULL, pthread_key_create(&end_key, key_ends), 0);
    on_exit(exits, NULL);
    at_quick_exit(exits_quick);
    for (int i = 0; i < s->nroles; i++) cast(&players[i], i);
    if (behind->play) back = helper(in_background, (void *)behind);
    for (int i = 0; i < s->nroles; i++) pthread_detach(helper(directs, &players[i]));
    pthread_t last = helper(quits, NULL);
    if (s->env[WHEN]) nap((int)(s->seed % 8000));
    else {
        finish(last);
        if (behind->play && (end->is & ALL_END || s->seed & 1)) finish(back);
    }
    if (end->play) end->play(NULL);
    return 6;
}
