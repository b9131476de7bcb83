/*
 * A searcher for whole programs: whole [seed [seconds]]
 *
 * A *scene* is a program with some 2 to 40 threads, drawn from words: some for all of it (who is in
 * the background, how the process ends, and when), and some for each of its players (whole.h): how
 * its thread is started, what stands around its call, the call that waits, what ends the wait, what
 * noise there is meanwhile, how the thread leaves; or a crowd, that does one thing together. What
 * comes of it the words decide, so native threads always pass: nothing here knows of gort.
 *
 * A scene is a process of its own. With a program before it (WHOLE_RUN=tools/gort-run) the same
 * scenes are played under that; `procs` and `debug` are words, too, and mean something there only.
 * What is found is printed as its text, without the words that do not matter.
 *
 *   whole 7 60            scenes by seed 7 for 60 seconds
 *   whole 'TEXT' [n]      one scene, n times
 *   whole words           what there is
 *
 *   WHOLE_RUN=program     that runs the scenes; nothing: they run as they are
 *   WHOLE_MONKEY=program  tests/long/monkey.c, for `under=monkey`
 *   WHOLE_ONLY=a,b        of the kinds of these words, only these; `crowd=x` and the like are meant
 *   WHOLE_NOT=a,b         without these, in the same form
 *   WHOLE_ALL=1           do not stop at the first, and reduce nothing
 *   WHOLE_JOBS=n          scenes at once (2)
 *   WHOLE_LIMIT=n         seconds of processor time for a scene (60); one that does not end though
 *                         it had the machine for long is stuck, too (tests/lib/stuck.h)
 */
#include "scene.h"
#include "../lib/stuck.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- the words ------------------------------------------------------------------------------- */

static const Word procs[] = {
    {.name = "2"}, {.name = "1"}, {.name = "4"}, {.name = "16"}, {.name = NULL}};
static const Word debug[] = {{.name = "none"},      {.name = "retake=hammer"},
                             {.name = "migrate=1"}, {.name = "retake=hammer,migrate=1"},
                             {.name = "uring=0"},   {.name = NULL}};
static const Word under[] = {{.name = "none"}, {.name = "monkey"}, {.name = NULL}};
static const Word when[] = {{.name = "last"}, {.name = "soon"}, {.name = NULL}};

enum { START = ENVS, WRAP, ACT, ENDER, NOISE, LEAVE, CROWD, KINDS };
static const struct {
    const char *name;
    const void *words;
    size_t size;
} kinds[KINDS] = {
    {"procs", procs, sizeof(Word)},   {"debug", debug, sizeof(Word)},
    {"under", under, sizeof(Word)},   {"back", backs, sizeof(Word)},
    {"end", ends, sizeof(Word)},      {"when", when, sizeof(Word)},
    {"start", starts, sizeof(Word)},  {"wrap", wraps, sizeof(Word)},
    {"act", acts, sizeof(Act)},       {"ender", enders, sizeof(Word)},
    {"noise", noises, sizeof(Word)},  {"leave", leaves, sizeof(Word)},
    {"crowd", crowds, sizeof(Crowd)},
};
static int count[KINDS];
static bool *wanted[KINDS];

/* The tables begin with their Word, each. */
static const Word *word(int kind, int i) {
    return (const Word *)(const void *)((const char *)kinds[kind].words +
                                        (size_t)i * kinds[kind].size);
}
static int find_word(int kind, const char *name) {
    for (int i = 0; i < count[kind]; i++)
        if (strcmp(word(kind, i)->name, name) == 0) return i;
    return -1;
}
static int find_kind(const char *name) {
    int k = 0;
    while (k < KINDS && strcmp(kinds[k].name, name) != 0) k++;
    return k;
}

/* ---- what goes together ---------------------------------------------------------------------- */

enum { CHOSEN = ENVS + 5 + WRAPS };
static int choices(const Scene *s, const Role *r, const Word *c[CHOSEN]) {
    int n = 0;
    c[n++] = word(BACK, s->env[BACK]);
    c[n++] = word(END, s->env[END]);
    c[n++] = word(NOISE, r->noise);
    if (r->crowd >= 0) return n;
    c[n++] = word(START, r->start);
    for (int w = 0; w < WRAPS; w++)
        if (r->wraps[w] >= 0) c[n++] = word(WRAP, r->wraps[w]);
    c[n++] = word(ACT, r->act);
    c[n++] = word(ENDER, r->ender);
    c[n++] = word(LEAVE, r->leave);
    return n;
}
static bool role_goes(const Scene *s, const Role *r) {
    const Word *c[CHOSEN];
    int n = choices(s, r, c), all = 0;
    if (r->crowd >= 0) return !(word(NOISE, r->noise)->is & LATE) && !(c[1]->refuses & c[0]->is);
    for (int a = 0; a < n; a++) {
        for (int b = 0; b < n; b++)
            if (a != b && (c[a] == c[b] || c[a]->refuses & c[b]->is)) return false;
        if (a != 0) all |= c[a]->is;
    }
    int is = word(ACT, r->act)->is, ender = word(ENDER, r->ender)->is;
    if (word(ENDER, r->ender)->wants & ~is) return false;
    if (all & ASYNC && !(is & LEAVABLE)) return false;
    if (all & BLOCKS && all & SIGNALS) return false;
    if (is & QUICK && ender & LATE) return false;
    for (int w = 1; w < WRAPS; w++)
        if (r->wraps[w] >= 0 && word(WRAP, r->wraps[w])->is & OUTER) return false;
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
    if (r->crowd >= 0) put(&at, end, "crowd=%s n=%d", word(CROWD, r->crowd)->name, r->n);
    else {
        put(&at, end, "start=%s", word(START, r->start)->name);
        for (int i = 0, any = 0; i < WRAPS; i++)
            if (r->wraps[i] >= 0)
                put(&at, end, "%s%s", any++ ? "," : " wrap=", word(WRAP, r->wraps[i])->name);
        put(&at, end, " act=%s ender=%s", word(ACT, r->act)->name, word(ENDER, r->ender)->name);
        if (r->leave) put(&at, end, " leave=%s", word(LEAVE, r->leave)->name);
    }
    if (r->noise) put(&at, end, " noise=%s", word(NOISE, r->noise)->name);
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
    fprintf(stderr, "whole: nothing is called %s\n", what);
    exit(2);
}
static int *number_at(Scene *s, Role *r, int kind) {
    switch (kind) {
    case START: return &r->start;
    case ACT: return &r->act;
    case ENDER: return &r->ender;
    case NOISE: return &r->noise;
    case LEAVE: return &r->leave;
    case CROWD: return &r->crowd;
    default: return &s->env[kind];
    }
}
static void read_word(Scene *s, Role *r, char *token) {
    char *value = strchr(token, '='), *save;
    int w = 0, i;
    if (!value) bad_text(token);
    *value++ = 0;
    int k = find_kind(token);
    if (strcmp(token, "seed") == 0) s->seed = strtoull(value, NULL, 0);
    else if (strcmp(token, "n") == 0 && r && atoi(value) <= MEMBERS) r->n = atoi(value);
    else if (k == KINDS || (k >= ENVS && !r)) bad_text(token);
    else if (k == WRAP) {
        for (char *t = strtok_r(value, ",", &save); t && w < WRAPS; t = strtok_r(NULL, ",", &save))
            if ((r->wraps[w++] = find_word(k, t)) < 0) bad_text(t);
    } else if ((i = find_word(k, value)) < 0) bad_text(value);
    else *number_at(s, r, k) = i;
}
static const Role no_role = {.wraps = {-1, -1, -1}, .crowd = -1, .n = 2};
static Scene read_scene(const char *text) {
    Scene s = {.seed = 1};
    char *copy = strdup(text), *save, *save2;
    Role *r = NULL; /* what stands before the first bar is for all */
    for (char *part = strtok_r(copy, "|", &save); part; part = strtok_r(NULL, "|", &save)) {
        bool first = part == copy;
        if (!first && s.nroles == PLAYERS) bad_text(part);
        r = first ? NULL : &s.roles[s.nroles++];
        if (r) *r = no_role;
        for (char *t = strtok_r(part, " ", &save2); t; t = strtok_r(NULL, " ", &save2))
            read_word(&s, r, t);
    }
    free(copy);
    return s;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static uint64_t state;
static int below(int n) { return (int)((draw_from(&state) >> 11) % (uint64_t)n); }

/* Words of a list, each as `name` or `kind=name`. */
static void mark(const char *list, bool *marked[KINDS], bool any[KINDS]) {
    char *copy = strdup(list), *save;
    for (char *t = strtok_r(copy, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
        char *value = strchr(t, '=');
        int only = KINDS, i, found = 0;
        if (value && (only = (*value = 0, find_kind(t))) < KINDS) t = value + 1;
        else if (value) *value = '=';
        for (int k = 0; k < KINDS; k++)
            if ((only == KINDS || only == k) && (i = find_word(k, t)) >= 0)
                marked[k][i] = any[k] = true, found++;
        if (!found) bad_text(t);
    }
    free(copy);
}
static void find_wanted(void) {
    bool * not [KINDS], any[KINDS] = {false}, none[KINDS];
    const char *only = getenv("WHOLE_ONLY"), *without = getenv("WHOLE_NOT");
    for (int k = 0; k < KINDS; k++) {
        while (word(k, count[k])->name) count[k]++;
        wanted[k] = calloc((size_t)count[k], sizeof(bool));
        not [k] = calloc((size_t)count[k], sizeof(bool));
    }
    mark(only ? only : "", wanted, any);
    mark(without ? without : "", not, none);
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < count[k]; i++) wanted[k][i] = (wanted[k][i] || !any[k]) && !not [k][i];
    if (!getenv("WHOLE_MONKEY")) wanted[UNDER][1] = false;
}
static int draw_word(int kind) {
    for (;;) {
        int i = below(count[kind]);
        if (wanted[kind][i]) return i;
    }
}
/* Half of the time the first word of a kind, which is the ordinary one. */
static int draw_usual(int kind) { return wanted[kind][0] && below(2) ? 0 : draw_word(kind); }

static Role draw_role(void) {
    Role r = no_role;
    r.noise = draw_usual(NOISE);
    if (below(4) == 0) {
        r.crowd = draw_word(CROWD);
        r.n = 2 + below(MEMBERS - 1);
        return r;
    }
    for (int i = 0, n = below(WRAPS + 1); i < n; i++) r.wraps[i] = draw_word(WRAP);
    r.start = draw_usual(START);
    r.act = draw_word(ACT);
    r.ender = draw_word(ENDER);
    r.leave = draw_usual(LEAVE);
    return r;
}
static Scene draw_scene(void) {
    Scene s = {.seed = draw_from(&state) >> 40};
    for (int k = 0; k < ENVS; k++) s.env[k] = draw_usual(k);
    for (int most = 1 + below(PLAYERS), tries = 0; s.nroles < most && tries < 1000; tries++) {
        s.roles[s.nroles] = draw_role();
        if (role_goes(&s, &s.roles[s.nroles])) s.nroles++;
        else if (s.nroles == 0 && tries % 20 == 19)
            s.env[BACK] = draw_usual(BACK), s.env[END] = draw_usual(END);
    }
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

static int number_of(const char *variable, int usual) {
    const char *s = getenv(variable);
    return s ? atoi(s) : usual;
}
static const char *work(void) {
    static char here[150];
    const char *w = getenv("WORK");
    if (!here[0] && w) snprintf(here, sizeof here, "%s", w);
    if (!here[0]) {
        snprintf(here, sizeof here, "/tmp/whole-XXXXXX");
        if (!mkdtemp(here)) exit(2);
    }
    return here;
}

static void becomes(const Scene *s) {
    char self[300], *argv[12];
    int n = 0;
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = 0;
    setenv("GORT_MAXPROCS", word(PROCS, s->env[PROCS])->name, 1);
    if (s->env[DEBUG]) setenv("GORT_DEBUG", word(DEBUG, s->env[DEBUG])->name, 1);
    if (s->env[UNDER] && getenv("WHOLE_MONKEY")) {
        argv[n++] = getenv("WHOLE_MONKEY");
        argv[n++] = "1234567";
    }
    if (getenv("WHOLE_RUN")) argv[n++] = getenv("WHOLE_RUN");
    argv[n++] = self;
    argv[n++] = "scene";
    argv[n++] = (char *)scene_text(s);
    argv[n] = NULL;
    execv(argv[0], argv);
    perror(argv[0]);
    _exit(2);
}
static void begin(Play *play, const Scene *s) {
    static int number;
    struct rlimit none = {0, 0};
    *play = (Play){.scene = *s};
    snprintf(play->dir, sizeof play->dir, "%s/%d", work(), number++);
    mkdir(play->dir, 0700);
    fflush(NULL);
    play->pid = fork();
    play->watch =
        (Stuck){.pid = play->pid, .seconds = number_of("WHOLE_LIMIT", 60), .most = STUCK_LOOKS};
    if (play->pid != 0) return;
    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &none);
    unshare(CLONE_NEWIPC); /* root's: what a scene leaves behind goes with it */
    if (chdir(play->dir) != 0) _exit(2);
    int out = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    close(out);
    close(null);
    becomes(s);
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
/* What is wrong with one that has ended; NULL: nothing. */
static const char *judge(const Play *play, int status) {
    const Scene *s = &play->scene;
    static char text[100];
    int right = word(END, s->env[END])->wants;
    if (s->env[UNDER] && getenv("WHOLE_MONKEY") && right & 0x7f) right = (128 + right) << 8;
    if (play->asked) return "it does not end";
    snprintf(text, sizeof text, "it ends with status %x, not %x", status & ~0x80, right);
    if ((status & ~0x80) != right) return text;
    bool all = !s->env[WHEN] || word(END, s->env[END])->is & ALL_END;
    if (all && !says(play, "played")) return "it ends before its end";
    if (!(word(END, s->env[END])->wants & 0x7f) && says(play, "gort: fatal"))
        return "it says something fatal";
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
    int64_t now = now_ns(CLOCK_MONOTONIC);
    if (now < play->looked + STUCK_PAUSE_MS * INT64_C(1000000)) return false;
    play->looked = now;
    if (play->asked) play->asked++;
    else play->asked = stuck_look(&play->watch);
    if (play->asked == 1) kill(-play->pid, SIGQUIT);
    if (play->asked == STUCK_LOOKS / 3) kill(-play->pid, SIGKILL);
    return false;
}
static void shell(const char *format, const char *dir) {
    char command[300];
    snprintf(command, sizeof command, format, dir);
    fflush(NULL);
    if (system(command) != 0) exit(2);
}
static void clean(const Play *play) { shell("rm -rf %s", play->dir); }

static const char *play_once(const Scene *s, bool tell) {
    Play play;
    const char *wrong = NULL;
    begin(&play, s);
    while (!ended(&play, &wrong)) usleep(2000);
    if (wrong && tell) {
        printf("%s\n", wrong);
        shell("tail -c 10000 %s/out", play.dir);
    }
    clean(&play);
    return wrong;
}

/* ---- reducing -------------------------------------------------------------------------------- */

static bool fails_within(const Scene *s, int times) {
    for (int i = 0; i < times; i++)
        if (play_once(s, false)) return true;
    return false;
}
static bool smaller(Scene *s, int64_t until) {
    Scene all[PLAYERS * (WRAPS + 4) + ENVS];
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
        if (role->crowd >= 0 && role->n > 2) all[n] = *s, all[n++].roles[r].n = 2;
    }
    for (int i = 0; i < n && now_ns(CLOCK_MONOTONIC) < until; i++) {
        bool good = true;
        for (int r = 0; r < all[i].nroles; r++) good &= role_goes(&all[i], &all[i].roles[r]);
        if (!good || !fails_within(&all[i], 10)) continue;
        *s = all[i];
        return true;
    }
    return false;
}
static void reduce(Scene s) {
    int64_t until = now_ns(CLOCK_MONOTONIC) + number_of("WHOLE_REDUCE", 300) * INT64_C(1000000000);
    if (!fails_within(&s, 20)) {
        printf("it does not come again in 20\n");
        return;
    }
    while (smaller(&s, until)) {}
    printf("smaller: whole '%s'\n", scene_text(&s));
    play_once(&s, true);
}

/* ---- the search ------------------------------------------------------------------------------ */

static void tell(const Play *play, const char *wrong) {
    printf("found: whole '%s'\n%s\n", scene_text(&play->scene), wrong);
    shell("tail -c 10000 %s/out", play->dir);
}
static int search_by(uint64_t seed, int seconds) {
    enum { MOST_JOBS = 16 };
    static Play plays[MOST_JOBS];
    int jobs = number_of("WHOLE_JOBS", 2), running = 0, scenes = 0, found = 0;
    bool all = getenv("WHOLE_ALL") != NULL, over = false;
    int64_t until = now_ns(CLOCK_MONOTONIC) + seconds * INT64_C(1000000000);
    if (jobs > MOST_JOBS) jobs = MOST_JOBS;
    state = seed;
    do {
        for (int i = 0; i < jobs; i++) {
            const char *wrong = NULL;
            if (plays[i].pid == 0 && !over) {
                Scene s = draw_scene();
                begin(&plays[i], &s);
                running++, scenes++;
            } else if (plays[i].pid != 0 && ended(&plays[i], &wrong)) {
                if (wrong) tell(&plays[i], wrong);
                if (wrong && !all) reduce(plays[i].scene);
                found += wrong != NULL;
                clean(&plays[i]);
                plays[i].pid = 0;
                running--;
            }
        }
        over = (found && !all) || now_ns(CLOCK_MONOTONIC) > until;
        usleep(1000);
    } while (!over || running > 0);
    printf("seed %" PRIu64 ": %d scenes, %d found\n", seed, scenes, found);
    return found != 0;
}

static int play_text(const char *text, int times) {
    Scene s = read_scene(text);
    int bad = 0;
    for (int i = 0; i < times; i++) bad += play_once(&s, bad == 0) != NULL;
    printf("%d of %d went wrong\n", bad, times);
    return bad != 0;
}

int main(int argc, char **argv) {
    find_wanted();
    if (argc > 2 && strcmp(argv[1], "scene") == 0) {
        static Scene s;
        s = read_scene(argv[2]);
        return scene_play(&s);
    }
    for (int k = 0; k < KINDS && argc > 1 && strcmp(argv[1], "words") == 0; k++) {
        printf("%s:", kinds[k].name);
        for (int i = 0; i < count[k]; i++) printf(" %s", word(k, i)->name);
        printf("\n");
    }
    if (argc > 1 && strcmp(argv[1], "words") == 0) return 0;
    if (argc > 1 && strchr(argv[1], '=')) return play_text(argv[1], argc > 2 ? atoi(argv[2]) : 1);
    return search_by(argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL),
                     argc > 2 ? atoi(argv[2]) : 10);
}
