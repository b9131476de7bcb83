/*
 * A searcher that multiplies features: product [seed [seconds]]
 *
 * Each part of the library has its tests, and what they leave open is mostly a product of two: a
 * context in use × a lock's deadline, a thread-like goroutine × fork, a trace × a signal. Here a
 * *scene* is drawn from words: some for all (how many Ps, a setting, who looks at it, how the
 * program ends), and for each of a few players how it was started, what stands around its call (up
 * to three), the call, what ends it, what noise there is meanwhile, and how the player leaves. Each
 * word knows what it promises (acts.c, costumes.c, enders.c), none knows the others: a new feature
 * is a new word, and meets all of the old ones.
 *
 * First every pair of words that go together has its turn, at least once; then scenes are drawn
 * until the time is up, which meets triples. A scene is a process of its own. What it prints when
 * something is wrong is its text; words that do not matter are dropped from it.
 *
 *   product 7 60            scenes by seed 7 for 60 seconds
 *   product 'TEXT' [n]      one scene, n times
 *   product words           what there is
 *
 *   PRODUCT_ONLY=a,b        of the kinds of these words, only these
 *   PRODUCT_JOBS=n          scenes at once (2)
 *   PRODUCT_LIMIT=n         seconds of processor time for a scene (60); one that does not end
 *                           though it had the machine for long is stuck, too (tests/lib/stuck.h)
 *   PRODUCT_JSON, PRODUCT_PF: programs that check traces (tests/lib)
 */
#include "../lib/stuck.h"
#include "product.h"
#include "scene.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- the words for all ----------------------------------------------------------------------- */

static const Word procs[] = {{.name = "2"}, {.name = "1"},  {.name = "3"},
                             {.name = "4"}, {.name = "16"}, {.name = NULL}};
static const Word debug[] = {{.name = "none"},
                             {.name = "retake=hammer"},
                             {.name = "migrate=1"},
                             {.name = "uring=0"},
                             {.name = "retake=off", .refuses = OS},
                             {.name = "asyncpreemptoff=1", .refuses = SPINS},
                             {.name = "stack=64k"},
                             {.name = "stall=20"},
                             {.name = "schedtrace=20"},
                             {.name = "leak=100ms"},
                             {.name = "hints=1"},
                             {.name = "signal=io"},
                             {.name = "crash=0"},
                             {.name = "relook=0"},
                             {.name = NULL}};
static const Word look[] = {
    {.name = "none"},   {.name = "json"},           {.name = "pftrace"},
    {.name = "flight"}, {.name = "page", .is = OS}, {.name = "profile", .is = OS},
    {.name = NULL}};
static const Word crowd[] = {{.name = "none"},
                             {.name = "busy", .is = OS | SPINS},
                             {.name = "idle"},
                             {.name = "threads", .is = OS},
                             {.name = NULL}};
static const Word director[] = {
    {.name = "goroutine"}, {.name = "thread", .is = DIRECTS | OS}, {.name = NULL}};
static const Word handler[] = {{.name = "none"}, {.name = "faults"}, {.name = NULL}};
static const Word ending[] = {{.name = "return"},
                              {.name = "exit", .is = OS},
                              {.name = "int", .is = OS},
                              {.name = "term", .is = OS},
                              {.name = "abort", .is = OS},
#if !SANITIZED
                              {.name = "segv", .is = OS},
                              {.name = "quit", .is = OS},
#endif
                              {.name = NULL}};
static const Word virtual[] = {
    {.name = "real"}, {.name = "sim", .refuses = OS | DIRECTS}, {.name = NULL}};

enum { START = ENVS, WRAP, ACT, ENDER, NOISE, LEAVE, KINDS };
static const struct {
    const char *name;
    const void *words;
    size_t size;
} kinds[KINDS] = {
    {"procs", procs, sizeof(Word)},       {"debug", debug, sizeof(Word)},
    {"look", look, sizeof(Word)},         {"crowd", crowd, sizeof(Word)},
    {"director", director, sizeof(Word)}, {"handler", handler, sizeof(Word)},
    {"ending", ending, sizeof(Word)},     {"clock", virtual, sizeof(Word)},
    {"start", starts, sizeof(Word)},      {"wrap", wraps, sizeof(Word)},
    {"act", acts, sizeof(Act)},           {"ender", enders, sizeof(Ender)},
    {"noise", noises, sizeof(Word)},      {"leave", leaves, sizeof(Word)},
};
static int count[KINDS], base[KINDS], total;

/* The tables begin with their Word, each. */
static const Word *word(int kind, int i) {
    return (const Word *)(const void *)((const char *)kinds[kind].words +
                                        (size_t)i * kinds[kind].size);
}
static void count_words(void) {
    for (int k = 0; k < KINDS; k++) {
        base[k] = total;
        while (word(k, count[k])->name) count[k]++;
        total += count[k];
    }
}
static int find_word(int kind, const char *name) {
    for (int i = 0; i < count[kind]; i++)
        if (strcmp(word(kind, i)->name, name) == 0) return i;
    return -1;
}

/* ---- what goes together ---------------------------------------------------------------------- */

static bool goes(int k, int i, int l, int j) {
    const Word *a = word(k, i), *b = word(l, j);
    if ((a->refuses & b->is) || (b->refuses & a->is)) return false;
    if ((a->is & NO_WAIT && b->is & LINGERS) || (b->is & NO_WAIT && a->is & LINGERS)) return false;
    if (k == ACT && l == ENDER && (b->wants & ~IN_GROUP & ~a->is)) return false;
    if (k == START && l == ENDER && (b->wants & IN_GROUP & ~a->is)) return false;
    return true;
}

/* The words of a role in one scene: env, and its own. -1: none. */
enum { CHOSEN = KINDS + WRAPS - 1 };
typedef struct Choice {
    int kind, i;
} Choice;
static int choices(const Scene *s, const Role *r, Choice c[CHOSEN]) {
    int n = 0;
    for (int k = 0; k < ENVS; k++) c[n++] = (Choice){k, s->env[k]};
    c[n++] = (Choice){START, r->start};
    for (int w = 0; w < WRAPS; w++)
        if (r->wraps[w] >= 0) c[n++] = (Choice){WRAP, r->wraps[w]};
    c[n++] = (Choice){ACT, r->act};
    c[n++] = (Choice){ENDER, r->ender};
    c[n++] = (Choice){NOISE, r->noise};
    c[n++] = (Choice){LEAVE, r->leave};
    return n;
}
static bool role_goes(const Scene *s, const Role *r) {
    Choice c[CHOSEN];
    int n = choices(s, r, c);
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            if (c[a].kind == WRAP && c[b].kind == WRAP && c[a].i == c[b].i) return false;
            if (!goes(c[a].kind, c[a].i, c[b].kind, c[b].i)) return false;
        }
    return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put(char **at, const char *end, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put(char **at, const char *end, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(*at, (size_t)(end - *at), format, args);
    va_end(args);
    *at = n < end - *at ? *at + n : *at;
}

void role_words(const Role *r, char *text, size_t size) {
    char *at = text, *end = text + size;
    put(&at, end, "start=%s", starts[r->start].name);
    for (int i = 0, any = 0; i < WRAPS; i++)
        if (r->wraps[i] >= 0)
            put(&at, end, "%s%s", any++ ? "," : " wrap=", wraps[r->wraps[i]].name);
    put(&at, end, " act=%s ender=%s", acts[r->act].word.name, enders[r->ender].word.name);
    if (r->noise) put(&at, end, " noise=%s", noises[r->noise].name);
    if (r->leave) put(&at, end, " leave=%s", leaves[r->leave].name);
}

static const char *scene_text(const Scene *s) {
    static char text[3000];
    char *at = text, *end = text + sizeof text, role[400];
    put(&at, end, "seed=%" PRIu64, s->seed);
    for (int k = 0; k < ENVS; k++)
        if (s->env[k]) put(&at, end, " %s=%s", kinds[k].name, word(k, s->env[k])->name);
    for (int i = 0; i < s->nroles; i++) {
        role_words(&s->roles[i], role, sizeof role);
        put(&at, end, " | %s", role);
    }
    return text;
}

static void bad_text(const char *what) {
    fprintf(stderr, "product: nothing is called %s\n", what);
    exit(2);
}
static void read_word(Scene *s, Role *r, char *token) {
    char *value = strchr(token, '=');
    if (!value) bad_text(token);
    *value++ = 0;
    if (strcmp(token, "seed") == 0) {
        s->seed = strtoull(value, NULL, 0);
        return;
    }
    int k = 0, w = 0;
    while (k < KINDS && strcmp(kinds[k].name, token) != 0) k++;
    if (k == KINDS) bad_text(token);
    if (k == WRAP) {
        char *save;
        for (char *t = strtok_r(value, ",", &save); t && w < WRAPS; t = strtok_r(NULL, ",", &save))
            if ((r->wraps[w++] = find_word(k, t)) < 0) bad_text(t);
        return;
    }
    int i = find_word(k, value);
    if (i < 0 || (k > ENVS && !r)) bad_text(value);
    if (k < ENVS) s->env[k] = i;
    else
        *(k == START   ? &r->start
          : k == ACT   ? &r->act
          : k == ENDER ? &r->ender
          : k == NOISE ? &r->noise
                       : &r->leave) = i;
}
static Scene read_scene(const char *text) {
    Scene s = {.seed = 1};
    char *copy = strdup(text), *save, *save2;
    Role *r = NULL; /* what stands before the first bar is for all */
    for (char *part = strtok_r(copy, "|", &save); part; part = strtok_r(NULL, "|", &save)) {
        bool first = part == copy;
        if (!first && s.nroles == PLAYERS) bad_text(part);
        r = first ? NULL : &s.roles[s.nroles++];
        if (r) *r = (Role){.wraps = {-1, -1, -1}};
        for (char *t = strtok_r(part, " ", &save2); t; t = strtok_r(NULL, " ", &save2))
            read_word(&s, r, t);
    }
    free(copy);
    return s;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static uint64_t state;
static int below(int n) { return (int)((test_random(&state) >> 11) % (uint64_t)n); }
static char *only;

/* Named by PRODUCT_ONLY, or none of its kind is. */
static bool named(const char *name) {
    char list[600], *save;
    snprintf(list, sizeof list, "%s", only);
    for (char *t = strtok_r(list, ",", &save); t; t = strtok_r(NULL, ",", &save))
        if (strcmp(t, name) == 0) return true;
    return false;
}
static bool *wanted; /* by word */
static void find_wanted(void) {
    wanted = calloc((size_t)total, sizeof *wanted);
    for (int k = 0; k < KINDS; k++) {
        bool any = false;
        for (int i = 0; i < count[k]; i++) any |= wanted[base[k] + i] = named(word(k, i)->name);
        for (int i = 0; i < count[k] && !any; i++) wanted[base[k] + i] = true;
    }
}
static int draw_word(int kind) {
    for (;;) {
        int i = below(count[kind]);
        if (wanted[base[kind] + i]) return i;
    }
}

/* Half of the time the first word of a kind, which is the ordinary one. */
static int draw_env(int kind) { return wanted[base[kind]] && below(2) ? 0 : draw_word(kind); }
static Role draw_role(void) {
    Role r = {.wraps = {-1, -1, -1}};
    for (int i = 0, n = below(WRAPS + 1); i < n; i++) r.wraps[i] = draw_word(WRAP);
    r.start = draw_word(START);
    r.act = draw_word(ACT);
    r.ender = draw_word(ENDER);
    r.noise = below(2) && wanted[base[NOISE]] ? 0 : draw_word(NOISE);
    r.leave = below(2) && wanted[base[LEAVE]] ? 0 : draw_word(LEAVE);
    return r;
}
static void force(Role *r, int kind, int i, int nth) {
    switch (kind) {
    case START: r->start = i; break;
    case WRAP: r->wraps[nth] = i; break;
    case ACT: r->act = i; break;
    case ENDER: r->ender = i; break;
    case NOISE: r->noise = i; break;
    case LEAVE: r->leave = i; break;
    default: break;
    }
}

typedef struct Pair {
    short k, i, l, j;
} Pair;
static Pair *pairs; /* in the order in which they have their turn */
static int npairs, next_pair, ncovered;
static uint8_t *covered; /* by the numbers of both words */

static void list_pairs(void) {
    pairs = malloc((size_t)total * (size_t)total * sizeof *pairs);
    covered = calloc((size_t)total * (size_t)total, 1);
    for (int k = 0; k < KINDS; k++)
        for (int l = k; l < KINDS; l++)
            for (int i = 0; i < count[k]; i++)
                for (int j = k == l ? i + 1 : 0; j < count[l]; j++) {
                    if (k == l && k != WRAP) continue;
                    if (!goes(k, i, l, j) || !wanted[base[k] + i] || !wanted[base[l] + j]) continue;
                    pairs[npairs++] = (Pair){(short)k, (short)i, (short)l, (short)j};
                }
    for (int n = npairs - 1; n > 0; n--) {
        int m = below(n + 1);
        Pair p = pairs[n];
        pairs[n] = pairs[m];
        pairs[m] = p;
    }
}
static uint8_t *cover_of(int k, int i, int l, int j) {
    int a = base[k] + i, b = base[l] + j;
    return &covered[a < b ? a * total + b : b * total + a];
}
static void cover(const Scene *s) {
    Choice c[CHOSEN];
    for (int r = 0; r < s->nroles; r++) {
        int n = choices(s, &s->roles[r], c);
        for (int a = 0; a < n; a++)
            for (int b = a + 1; b < n; b++) {
                uint8_t *at = cover_of(c[a].kind, c[a].i, c[b].kind, c[b].i);
                ncovered += !*at;
                *at = 1;
            }
    }
}

/* A role that has the pair in it, in this scene. */
static bool draw_with(Scene *s, const Pair *p, bool first) {
    Role *r = &s->roles[s->nroles];
    for (int tries = 0; tries < 400; tries++) {
        Scene changed = *s;
        if (p && p->k < ENVS) changed.env[p->k] = p->i;
        if (p && p->l < ENVS) changed.env[p->l] = p->j;
        if (!first && memcmp(changed.env, s->env, sizeof s->env) != 0) return false;
        *r = draw_role();
        if (p) force(r, p->k, p->i, 0);
        if (p) force(r, p->l, p->j, 1 + below(2));
        if (!role_goes(&changed, r)) {
            if (first && tries % 4 == 3)
                for (int k = 0; k < ENVS; k++) s->env[k] = draw_env(k);
            continue;
        }
        memcpy(s->env, changed.env, sizeof s->env);
        s->nroles++;
        return true;
    }
    return false;
}

/* The next pair without a turn, and others that fit; then whatever comes. */
static Scene draw_scene(void) {
    Scene s = {.seed = test_random(&state) >> 40};
    for (int k = 0; k < ENVS; k++) s.env[k] = draw_env(k);
    while (next_pair < npairs) {
        Pair *p = &pairs[next_pair];
        if (!*cover_of(p->k, p->i, p->l, p->j) && draw_with(&s, p, true)) break;
        next_pair++;
    }
    for (int n = next_pair, most = 2 + below(PLAYERS - 2); s.nroles < most;) {
        for (; n < npairs && n < next_pair + 300; n++) {
            Pair *p = &pairs[n];
            if (!*cover_of(p->k, p->i, p->l, p->j) && draw_with(&s, p, s.nroles == 0)) break;
        }
        if (n >= npairs || n++ >= next_pair + 300)
            if (!draw_with(&s, NULL, s.nroles == 0) && s.nroles > 0) break;
    }
    cover(&s);
    return s;
}

/* ---- playing one ----------------------------------------------------------------------------- */

typedef struct Play {
    Scene scene;
    pid_t pid;
    Stuck watch;
    int64_t looked; /* when */
    int asked;      /* looks since SIGQUIT has asked what it is in; 0: it has not */
    char dir[200];
} Play;

static int seconds_for_one(void) {
    const char *s = getenv("PRODUCT_LIMIT");
    return s ? atoi(s) : 60;
}
static const char *work(void) {
    static char here[150];
    const char *w = getenv("WORK");
    if (!here[0] && w) snprintf(here, sizeof here, "%s", w);
    if (!here[0]) {
        snprintf(here, sizeof here, "/tmp/product-XXXXXX");
        if (!mkdtemp(here)) exit(2);
    }
    return here;
}

static void set_variables(const Scene *s) {
    char text[200];
    setenv("GORT_MAXPROCS", word(PROCS, s->env[PROCS])->name, 1);
    bool flight = strcmp(word(LOOK, s->env[LOOK])->name, "flight") == 0;
    snprintf(text, sizeof text, "%s%s", s->env[DEBUG] ? word(DEBUG, s->env[DEBUG])->name : "",
             !flight         ? ""
             : s->env[DEBUG] ? ",flight=1000"
                             : "flight=1000");
    if (text[0]) setenv("GORT_DEBUG", text, 1);
    if (strcmp(word(LOOK, s->env[LOOK])->name, "json") == 0) setenv("GORT_TRACE", "t.json", 1);
    if (strcmp(word(LOOK, s->env[LOOK])->name, "pftrace") == 0)
        setenv("GORT_TRACE", "t.pftrace", 1);
    if (word(LOOK, s->env[LOOK])->is & OS) {
        snprintf(text, sizeof text, "unix:@product-page-%d", (int)getpid());
        setenv("GORT_HTTP", text, 1);
        setenv("GORT_HTTP_TOKEN", "t", 1);
    }
    snprintf(text, sizeof text, "%" PRIu64, s->seed + 1);
    if (s->env[CLOCK]) setenv("GORT_SIM", text, 1);
}

static void begin(Play *play, const Scene *s) {
    static int number;
    *play = (Play){.scene = *s};
    snprintf(play->dir, sizeof play->dir, "%s/%d", work(), number++);
    mkdir(play->dir, 0700);
    fflush(NULL);
    play->pid = fork();
    play->watch = (Stuck){.pid = play->pid, .seconds = seconds_for_one(), .most = STUCK_LOOKS};
    if (play->pid != 0) return;
    setpgid(0, 0);
    if (chdir(play->dir) != 0) _exit(2);
    int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    close(out);
    close(null);
    set_variables(s);
    if (getenv("PRODUCT_PRELOAD")) setenv("LD_PRELOAD", getenv("PRODUCT_PRELOAD"), 1);
    execl("/proc/self/exe", "product", "scene", scene_text(s), NULL);
    _exit(2);
}

static bool says(const Play *play, const char *text) {
    char path[300];
    snprintf(path, sizeof path, "%s/out", play->dir);
    int fd = open(path, O_RDONLY);
    off_t size = lseek(fd, 0, SEEK_END);
    char *all = calloc(1, (size_t)size + 1);
    bool found = pread(fd, all, (size_t)size, 0) == size && strstr(all, text);
    free(all);
    close(fd);
    return found;
}

static bool checked(const Play *play, const char *variable, const char *file) {
    char command[600];
    struct stat st;
    const char *checker = getenv(variable);
    snprintf(command, sizeof command, "%s/%s", play->dir, file);
    if (!checker || stat(command, &st) != 0) return true;
    snprintf(command, sizeof command, "cd %s && %s %s >>out 2>&1", play->dir, checker, file);
    /* one in which nothing happened is whole */
    return system(command) == 0 || says(play, "\n0 slices");
}
static int status_of(const Scene *s) {
    bool own = s->env[HANDLER] == 1;
    switch (s->env[ENDING]) {
    case E_EXIT: return 7 << 8;
    case E_INT: return SIGINT;
    case E_TERM: return SIGTERM;
    case E_ABORT: return own ? 9 << 8 : SIGABRT;
    case E_SEGV: return own ? 9 << 8 : SIGSEGV;
    case E_QUIT: return 2 << 8;
    default: return 0;
    }
}
/* What is wrong with one that has ended; NULL: nothing. */
static const char *judge(const Play *play, int status) {
    const Scene *s = &play->scene;
    static char text[100];
    if (play->asked) return "it does not end";
    snprintf(text, sizeof text, "it ends with status %x, not %x", status & ~0x80, status_of(s));
    if ((status & ~0x80) != status_of(s)) return text;
    if (s->env[ENDING] == E_RETURN && !says(play, "played")) return "it ends before its end";
    if (s->env[ENDING] <= E_TERM && says(play, "gort: fatal")) return "it says something fatal";
    if (says(play, "Sanitizer") || says(play, "runtime error:")) return "a sanitizer speaks";
    if (status == 9 << 8) return NULL;
    if (!checked(play, "PRODUCT_JSON", "t.json")) return "its trace does not hold together";
    if (!checked(play, "PRODUCT_PF", "t.pftrace")) return "its trace does not hold together";
    if (s->env[ENDING] != E_RETURN) return NULL;
    if (!checked(play, "PRODUCT_JSON", "noise.json")) return "noise.json does not hold together";
    if (!checked(play, "PRODUCT_PF", "noise.pftrace")) return "noise.pftrace: the same";
    return NULL;
}

/* Looks at one that runs: whether it has ended, and then how. */
static bool ended(Play *play, const char **wrong) {
    int status;
    if (waitpid(play->pid, &status, WNOHANG) == play->pid) {
        kill(-play->pid, SIGKILL);
        *wrong = judge(play, status);
        return true;
    }
    if (gort_now() < play->looked + STUCK_PAUSE_MS * GORT_MS) return false;
    play->looked = gort_now();
    if (play->asked) play->asked++;
    else play->asked = stuck_look(&play->watch);
    if (play->asked == 1) kill(play->pid, SIGQUIT);
    if (play->asked == STUCK_LOOKS) kill(play->pid, SIGKILL);
    return false;
}
static void clean(const Play *play) {
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", play->dir);
    if (system(command) != 0) exit(2);
}
static void show_output(const Play *play) {
    char command[300];
    snprintf(command, sizeof command, "tail -c 6000 %s/out", play->dir);
    fflush(NULL);
    if (system(command) != 0) exit(2);
}
static bool fails_within(const Scene *s, int times) {
    for (int i = 0; i < times; i++) {
        Play play;
        const char *wrong = NULL;
        begin(&play, s);
        while (!ended(&play, &wrong)) usleep(2000);
        clean(&play);
        if (wrong) return true;
    }
    return false;
}

/* ---- reducing -------------------------------------------------------------------------------- */

static bool smaller(Scene *s, int64_t until) {
    Scene all[PLAYERS * (WRAPS + 3) + ENVS];
    int n = 0;
    for (int r = 0; r < s->nroles && s->nroles > 1; r++) {
        all[n] = *s;
        memmove(&all[n].roles[r], &all[n].roles[r + 1], sizeof(Role) * (size_t)(PLAYERS - r - 1));
        all[n++].nroles--;
    }
    for (int k = 0; k < ENVS; k++)
        if (s->env[k]) (all[n] = *s).env[k] = 0, all[n++].env[k] = 0;
    for (int r = 0; r < s->nroles; r++) {
        Role *role = &s->roles[r];
        for (int w = 0; w < WRAPS; w++)
            if (role->wraps[w] >= 0) all[n] = *s, all[n++].roles[r].wraps[w] = -1;
        if (role->noise) all[n] = *s, all[n++].roles[r].noise = 0;
        if (role->leave) all[n] = *s, all[n++].roles[r].leave = 0;
        if (role->start) all[n] = *s, all[n++].roles[r].start = 0;
    }
    for (int i = 0; i < n && gort_now() < until; i++) {
        bool good = true;
        for (int r = 0; r < all[i].nroles; r++) good &= role_goes(&all[i], &all[i].roles[r]);
        if (!good || !fails_within(&all[i], 8)) continue;
        *s = all[i];
        return true;
    }
    return false;
}
static void reduce(Scene s) {
    int64_t until = gort_now() + 90 * GORT_SEC;
    if (!fails_within(&s, 8)) {
        printf("  (not again in 8 times)\n");
        return;
    }
    while (gort_now() < until && smaller(&s, until)) continue;
    printf("  reduced: product '%s' 20\n", scene_text(&s));
}

static void tell(const Play *play, const char *wrong) {
    printf("found: %s\n  product '%s'\n", wrong, scene_text(&play->scene));
    show_output(play);
    fflush(stdout);
}

/* ---- many ------------------------------------------------------------------------------------ */

static int search_by(uint64_t seed, int seconds) {
    enum { MOST = 16 };
    static Play plays[MOST];
    const char *jobs_text = getenv("PRODUCT_JOBS"), *all = getenv("PRODUCT_ALL");
    int jobs = jobs_text ? atoi(jobs_text) : 2, found = 0, scenes = 0, running = 0;
    bool over = false;
    int64_t until = gort_now() + seconds * GORT_SEC;
    if (jobs > MOST) jobs = MOST;
    state = seed * 2654435761u + 1;
    list_pairs();
    do {
        for (int i = 0; i < jobs; i++) {
            const char *wrong = NULL;
            if (plays[i].pid == 0 && !over) {
                Scene s = draw_scene();
                begin(&plays[i], &s);
                running++, scenes++;
            } else if (plays[i].pid != 0 && ended(&plays[i], &wrong)) {
                if (wrong) tell(&plays[i], wrong);
                if (wrong && !getenv("PRODUCT_ALL")) reduce(plays[i].scene);
                found += wrong != NULL;
                clean(&plays[i]);
                plays[i].pid = 0;
                running--;
            }
        }
        over = (found && !all) || (seconds ? gort_now() > until : next_pair >= npairs);
        usleep(1000);
    } while (!over || running > 0);
    printf("seed %" PRIu64 ": %d scenes, %d of %d pairs, %d found\n", seed, scenes, ncovered,
           npairs, found);
    return found != 0;
}

static int play_text(const char *text, int times) {
    Scene s = read_scene(text);
    int bad = 0;
    for (int i = 0; i < times; i++) {
        Play play;
        const char *wrong = NULL;
        begin(&play, &s);
        while (!ended(&play, &wrong)) usleep(2000);
        if (wrong && bad++ == 0) tell(&play, wrong);
        clean(&play);
    }
    printf("%d of %d went wrong\n", bad, times);
    return bad != 0;
}

int main(int argc, char **argv) {
    count_words();
    only = getenv("PRODUCT_ONLY") ? getenv("PRODUCT_ONLY") : "";
    find_wanted();
    if (argc > 2 && strcmp(argv[1], "scene") == 0) {
        Scene s = read_scene(argv[2]);
        printf("%s\n", argv[2]);
        fflush(stdout);
        return scene_play(&s);
    }
    for (int k = 0; k < KINDS && argc > 1 && strcmp(argv[1], "words") == 0; k++) {
        printf("%s:", kinds[k].name);
        for (int i = 0; i < count[k]; i++) printf(" %s", word(k, i)->name);
        printf("\n");
    }
    if (argc > 1 && strcmp(argv[1], "words") == 0) return 0;
    if (argc > 1 && strchr(argv[1], '=')) return play_text(argv[1], argc > 2 ? atoi(argv[2]) : 1);
    return search_by(argc > 1 ? strtoull(argv[1], NULL, 0) : stress_seed(),
                     argc > 2 ? atoi(argv[2]) : 0);
}
