/*
 * GORT_MAXPROCS, GORT_DEBUG, GORT_SIM, GORT_TRACE, GORT_HTTP.
 *
 * The whole library reads the environment by env_get alone (tests/script/secure.sh). In a program
 * that runs with more rights than its caller (set-user-ID, set-group-ID, file capabilities: the
 * kernel says AT_SECURE) the environment is the caller's, and the files that the variables name
 * would be written with the program's rights: there no variable is set.
 *
 * A wrong setting is ignored, with a line on stderr that says what would be right. All is read anew
 * at each gort_main. GORT_DEBUG is a list of name=value, explained in gort_debug(3); the table has
 * defaults and bounds. GORT_DEBUG=help prints it and exits, as the loader of shared libraries does
 * when asked so: a user who wants the list does not want a server to start. It prints what is in
 * force, so the words beside `help` count.
 */
#include "base/env.h"
#include "base/print.h"
#include "base/sysfault.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>

char env_trace[1024], env_http[256];

const char *env_get(const char *variable) { return getauxval(AT_SECURE) ? NULL : getenv(variable); }

/* ---- values --------------------------------------------------------------------------------- */

static bool parse_hex(const char *s, size_t n, uint64_t *v) {
    if (n == 0 || n > 16) return false;
    for (*v = 0; n > 0; s++, n--) {
        if (hex_digit(*s) < 0) return false;
        *v = *v << 4 | (uint64_t)hex_digit(*s);
    }
    return true;
}

/* 65536, 64k, 1m, 1g. */
static bool parse_size(const char *s, size_t n, uint64_t *v) {
    int shift = 0;
    if (n > 0) {
        char c = (char)(s[n - 1] | 32);
        shift = c == 'k' ? 10 : c == 'm' ? 20 : c == 'g' ? 30 : 0;
    }
    if (!parse_u64(s, n - (shift != 0), v)) return false;
    *v = *v > UINT64_MAX >> shift ? UINT64_MAX : *v << shift;
    return true;
}

/* Minutes, or 30s, or 200ms: as ms. */
static bool parse_minutes(const char *s, size_t n, uint64_t *v) {
    uint64_t unit = 60 * 1000;
    if (n > 2 && s[n - 2] == 'm' && s[n - 1] == 's') unit = 1, n -= 2;
    else if (n > 1 && s[n - 1] == 's') unit = 1000, n -= 1;
    if (!parse_u64(s, n, v)) return false;
    *v = *v > UINT64_MAX / unit ? UINT64_MAX : *v * unit;
    return true;
}

static const struct SignalWord {
    const char *name;
    int signo;
} signal_words[] = {{"urg", SIGURG},   {"usr1", SIGUSR1}, {"usr2", SIGUSR2},
                    {"prof", SIGPROF}, {"io", SIGIO},     {"winch", SIGWINCH}};

static bool parse_signal(const char *s, size_t n, uint64_t *v) {
    for (size_t i = 0; i < count_of(signal_words); i++) {
        if (!word_is(s, n, signal_words[i].name)) continue;
        *v = (uint64_t)signal_words[i].signo;
        return true;
    }
    if (!parse_u64(s, n, v) || *v < 1 || *v > 64) return false;
    return *v != SIGKILL && *v != SIGSTOP && *v != SIGSEGV && *v != SIGBUS && *v != SIGQUIT &&
           *v != 32 && *v != 33; /* libc's own */
}

static bool parse_retake(const char *s, size_t n, uint64_t *v) {
    if (word_is(s, n, "off")) *v = 1;
    else if (word_is(s, n, "hammer")) *v = 2;
    else return parse_u64(s, n, v);
    return true;
}

/* The same backwards: as the value would be written. */

static void show_number(Out *o, uint64_t v) { out_fmt(o, "%lu", v); }

static void show_size(Out *o, uint64_t v) {
    int shift = v == 0 ? 0 : v % (1 << 30) == 0 ? 30 : v % (1 << 20) == 0 ? 20 : 10;
    if (v % 1024 != 0) shift = 0;
    out_fmt(o, "%lu%s", v >> shift, shift == 30 ? "g" : shift == 20 ? "m" : shift ? "k" : "");
}

static void show_minutes(Out *o, uint64_t v) {
    if (v % 60000 == 0) out_fmt(o, "%lu", v / 60000);
    else if (v % 1000 == 0) out_fmt(o, "%lus", v / 1000);
    else out_fmt(o, "%lums", v);
}

static void show_signal(Out *o, uint64_t v) {
    for (size_t i = 0; i < count_of(signal_words); i++)
        if ((uint64_t)signal_words[i].signo == v) out_str(o, signal_words[i].name);
}

static void show_retake(Out *o, uint64_t v) {
    out_str(o, v == 0 ? "0" : v == 1 ? "off" : "hammer");
}

/* ---- GORT_DEBUG ----------------------------------------------------------------------------- */

typedef struct Form {
    bool (*parse)(const char *s, size_t n, uint64_t *v);
    void (*show)(Out *o, uint64_t v);
    const char *words; /* instead of bounds */
} Form;
static const Form form_number = {parse_u64, show_number, NULL},
                  form_size = {parse_size, show_size, NULL},
                  form_minutes = {parse_minutes, show_minutes, NULL},
                  form_signal = {parse_signal, show_signal,
                                 "a number, or urg, usr1, usr2, prof, io, winch"},
                  form_retake = {parse_retake, show_retake, "0, off, hammer"};

typedef struct Setting {
    const char *name;
    size_t offset, size;
    const Form *form;
    uint64_t initial, least, most;
    const char *unit, *what; /* for GORT_DEBUG=help */
} Setting;

#define AT(field) offsetof(Settings, field), sizeof settings.field
#define DAYS_MS (10ULL * 24 * 3600 * 1000)
#ifdef GORT_CHECKED
#define CHECKED 1
#else
#define CHECKED 0
#endif
/* clang-format off */
static const Setting table[] = {
    {"schedtrace", AT(schedtrace), &form_number, 0, 0, DAYS_MS,
     "ms", "a line about the scheduler every so often"},
    {"scheddetail", AT(scheddetail), &form_number, 0, 0, 1,
     "1", "adds a line for every P, M and G to it"},
    {"asyncpreemptoff", AT(asyncpreemptoff), &form_number, 0, 0, 1,
     "1", "preempts by flag only, never by signal"},
    {"maxthreads", AT(maxthreads), &form_number, 10000, 1, 1 << 22,
     "n", "the threads that run goroutines, at most"},
    {"stack", AT(stack_size), &form_size, 0, 16 << 10, 1 << 30,
     "size", "of a default stack; 0: 208k"},
    {"maxstack", AT(maxstack), &form_size, 1 << 30, 16 << 10, 1ULL << 34,
     "size", "how far a compact stack may grow"},
    {"migrate", AT(migrate), &form_number, 0, 0, 1,
     "1", "another thread at every switch, for tests"},
    {"stall", AT(stall), &form_number, 0, 0, DAYS_MS,
     "ms", "reports a goroutine that keeps its P for so long"},
    {"signal", AT(preempt_signal), &form_signal, SIGURG, 1, 64,
     "signal", "the one that preempts"},
    {"retake", AT(retake), &form_retake, 0, 0, 2,
     "how", "takes Ps from threads that block unannounced"},
#ifdef GORT_CHECKED
    {"break", AT(break_step), &form_number, 0, 0, 1000,
     "n", "leaves out a step of a protocol, for tests"},
#endif
    {"uring", AT(uring), &form_number, 1, 0, 1,
     "0", "no io_uring for files"},
    {"relook", AT(relook), &form_number, 1, 0, 1,
     "0", "asks the kernel once about a descriptor, for tests"},
    {"crash", AT(crash), &form_number, 1, 0, 1,
     "0", "no report of SIGSEGV, SIGABRT and their like"},
    {"hints", AT(hints), &form_number, CHECKED, 0, 1,
     "1", "tells once what is allowed but hardly meant"},
    {"flight", AT(flight), &form_number, 0, 0, DAYS_MS,
     "ms", "keeps the trace of so long, for the end"},
    {"tracemax", AT(tracemax), &form_number, TRACE_MB, 1, 1 << 20,
     "MB", "of a trace, at most"},
    {"leak", AT(leak), &form_minutes, 0, 0, 365 * DAYS_MS,
     "minutes", "reports goroutines blocked for longer; 30s, 200ms"},
    {"forcegc", AT(forcegc), &form_minutes, 2 * 60 * 1000, 0, 365 * DAYS_MS,
     "minutes", "between collections, at most; 0: no limit"},
};
/* clang-format on */

static uint64_t setting_value(const Setting *t) {
    const void *at = (const char *)&settings + t->offset;
    if (t->size == sizeof(bool)) return *(const bool *)at;
    return t->size == sizeof(int) ? (uint64_t) * (const int *)at : *(const uint64_t *)at;
}

static void set(const Setting *t, uint64_t v) {
    void *at = (char *)&settings + t->offset;
    if (t->size == sizeof(bool)) *(bool *)at = v != 0;
    else if (t->size == sizeof(int)) *(int *)at = (int)v;
    else *(uint64_t *)at = v;
}

/* Begins "gort: VARIABLE=text ignored: ". */
static void complain_begin(Out *o, const char *variable, const char *text, size_t n) {
    out_fmt(o, "gort: %s=", variable);
    out_bytes(o, text, n < 100 ? n : 100);
    if (n > 100) out_str(o, "...");
    out_str(o, " ignored: ");
}

/* All of it, in one write. */
static void complain(const char *variable, const char *text, size_t n, const char *why) {
    char buf[512];
    Out o = OUT(-1, buf);
    complain_begin(&o, variable, text, n);
    out_fmt(&o, "%s\n", why);
    write_all(2, buf, o.used);
}

static void complain_value(const Setting *t, const char *s, size_t n, const char *why) {
    char buf[512];
    Out o = OUT(-1, buf);
    complain_begin(&o, "GORT_DEBUG", s, n);
    out_fmt(&o, "%s; %s=%s: ", why, t->name, t->unit);
    if (t->form->words) out_str(&o, t->form->words);
    else t->form->show(&o, t->least);
    if (t->form->words == NULL) out_str(&o, " to ");
    if (t->form->words == NULL) t->form->show(&o, t->most);
    out_str(&o, "\n");
    write_all(2, buf, o.used);
}

#define NAME_MOST 20

/* How many letters have to be put in, taken out or changed. word: NAME_MOST - 1 at most. */
static size_t word_edits(const char *s, size_t n, const char *word) {
    size_t row[NAME_MOST], m = strlen(word);
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 0; i < n; i++) {
        size_t before = row[0]++; /* of the row above, one to the left */
        for (size_t j = 0; j < m; j++) {
            size_t changed = before + (s[i] != word[j]);
            size_t other = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            before = row[j + 1];
            row[j + 1] = changed < other ? changed : other;
        }
    }
    return row[m];
}

/* NULL: none is like it. */
static const char *setting_nearest(const char *s, size_t n) {
    const char *name = "sysfault";
    size_t least = word_edits(s, n, name);
    for (size_t i = 0; i < count_of(table); i++) {
        size_t n_edits = word_edits(s, n, table[i].name);
        if (n_edits < least) least = n_edits, name = table[i].name;
    }
    return least <= n / 2 ? name : NULL;
}

static void complain_name(const char *s, size_t n, size_t name) {
    char buf[512];
    const char *near = setting_nearest(s, name);
    Out o = OUT(-1, buf);
    complain_begin(&o, "GORT_DEBUG", s, n);
    out_str(&o, "unknown name");
    if (near) out_fmt(&o, ", perhaps %s", near);
    out_str(&o, "; GORT_DEBUG=help lists all\n");
    write_all(2, buf, o.used);
}

static void read_value(const Setting *t, const char *item, size_t length, const char *s, size_t n) {
    uint64_t v = 0;
    if (!t->form->parse(s, n, &v)) complain_value(t, item, length, "bad value");
    else if (v < t->least || v > t->most) complain_value(t, item, length, "value out of range");
    else set(t, v);
}

static bool wants_help; /* GORT_DEBUG has the word */

static void read_item(const char *s, size_t n) {
    const char *eq = memchr(s, '=', n);
    size_t name = eq ? (size_t)(eq - s) : n;
    for (size_t i = 0; i < count_of(table); i++) {
        const Setting *t = &table[i];
        if (!word_is(s, name, t->name)) continue;
        if (eq) read_value(t, s, n, eq + 1, n - name - 1);
        else complain_value(t, s, n, "no value");
        return;
    }
    if (word_is(s, n, "help")) wants_help = true;
    else if (!word_is(s, name, "sysfault")) complain_name(s, n, name);
    else if (eq == NULL || !sysfault_rule(eq + 1, n - name - 1))
        complain("GORT_DEBUG", s, n, "bad value; sysfault=call:error:when, see gort_debug(3)");
}

static void read_debug(const char *s) {
    sysfault_clear();
    wants_help = false;
    while (s && *s) {
        size_t n = strcspn(s, ",");
        if (n > 0) read_item(s, n);
        s += n + (s[n] == ',');
    }
}

/* ---- the others ----------------------------------------------------------------------------- */

/* The CPUs that the process may use, and no more than its cgroup has time for. A quota of one still
 * gives two Ps: with one, a goroutine that computes would hold up all else for whole slices. */
int env_default_procs(void) {
    int cpus = os_cpu_count(), quota = os_cpu_quota();
    if (quota < 0) return -1;
    if (quota > 0 && quota < cpus) cpus = quota < 2 ? 2 : quota;
    return cpus < 1 ? 1 : cpus > MAX_PROCS ? MAX_PROCS : cpus;
}

static void read_maxprocs(const char *s) {
    uint64_t n;
    if (s && (!parse_u64(s, strlen(s), &n) || n == 0)) {
        complain("GORT_MAXPROCS", s, strlen(s), "not a number, or less than 1");
        s = NULL;
    }
    settings.procs_from_env = s != NULL;
    settings.procs = s == NULL ? env_default_procs() : n > MAX_PROCS ? MAX_PROCS : (int)n;
    if (settings.procs < 1)
        settings.procs = os_cpu_count() > MAX_PROCS ? MAX_PROCS : os_cpu_count();
}

/* sim == 0 means off, so seed 0 is stored as another. */
static void read_sim(const char *s) {
    uint64_t seed = 0;
    settings.sim = 0;
    settings.sim_yields = UINT64_MAX;
    if (s == NULL || *s == 0) return;
    size_t n = strcspn(s, ":");
    if (s[n] == ':' && !parse_u64(s + n + 1, strlen(s + n + 1), &settings.sim_yields)) {
        complain("GORT_SIM", s, strlen(s), "not seed:number");
        return;
    }
    bool hex = n > 2 && s[0] == '0' && (s[1] | 32) == 'x';
    if (hex ? parse_hex(s + 2, n - 2, &seed) : parse_u64(s, n, &seed))
        settings.sim = seed ? seed : UINT64_MAX;
    else complain("GORT_SIM", s, n, "not a number");
}

static void keep(char *to, size_t size, const char *variable) {
    const char *s = env_get(variable);
    to[0] = 0;
    if (s == NULL) return;
    if (strlen(s) < size) memcpy(to, s, strlen(s) + 1);
    else complain(variable, s, strlen(s), "too long");
}

/* ---- help ----------------------------------------------------------------------------------- */

static void help_column(Out *o, uint32_t from, uint32_t width) {
    do out_str(o, " ");
    while (o->used < from + width);
}

static void help_setting(Out *o, const Setting *t) {
    uint32_t from = o->used;
    out_fmt(o, "  %s=%s", t->name, t->unit);
    help_column(o, from, 23);
    t->form->show(o, setting_value(t));
    help_column(o, from, 32);
    t->form->show(o, t->initial);
    help_column(o, from, 41);
    out_fmt(o, "%s\n", t->what);
}

static void help_variable(Out *o, const char *name, const char *value, const char *what) {
    uint32_t from = o->used;
    const char *is = env_get(name);
    out_fmt(o, "  %s=%s", name, value);
    help_column(o, from, 32);
    out_str(o, what);
    if (is) out_fmt(o, " (now %s)", is);
    out_str(o, "\n");
}

static void help_print(void) {
    char buf[6000], procs[40];
    Out o = OUT(-1, buf);
    out_str(&o, "GORT_DEBUG=name=value,name=value,... for programs that use gort:\n\n"
                "  setting              now      default\n");
    for (size_t i = 0; i < count_of(table); i++) help_setting(&o, &table[i]);
    out_str(&o,
            "  sysfault=call:error:when      makes system calls of the library fail, for tests\n"
            "\nThe other variables:\n\n");
    print_buf(procs, sizeof procs, "processors used: %d", settings.procs);
    help_variable(&o, "GORT_MAXPROCS", "n", procs);
    help_variable(&o, "GORT_TRACE", "file", "an execution trace of the whole run");
    help_variable(&o, "GORT_HTTP", ":port", "the live page, for a browser of this machine");
    help_variable(&o, "GORT_HTTP_TOKEN", "token", "who may look from elsewhere");
    help_variable(&o, "GORT_SIM", "seed", "a schedule that can be repeated, see gort-explore(1)");
    help_variable(&o, "GORT_SIM_LOG", "file", "lists what that schedule did");
    help_variable(&o, "GORT_CGROUP_ROOT", "dir", "in place of /sys/fs/cgroup, for tests");
    out_str(&o, "\ngort_debug(3) explains the settings, gort(7) the variables. The program was not "
                "started.\n");
    write_all(1, buf, o.used);
}

void env_read(void) {
    for (size_t i = 0; i < count_of(table); i++) set(&table[i], table[i].initial);
    read_debug(env_get("GORT_DEBUG"));
    os_cgroup_root(env_get("GORT_CGROUP_ROOT")); /* kept: the monitor must not call getenv */
    read_maxprocs(env_get("GORT_MAXPROCS"));
    read_sim(env_get("GORT_SIM"));
    keep(env_trace, sizeof env_trace, "GORT_TRACE");
    keep(env_http, sizeof env_http, "GORT_HTTP");
    if (!wants_help) return;
    help_print();
    exit(0);
}

/* Before the first gort_main the word itself is looked for. */
bool env_hints(void) {
    if (settings.procs != 0) return settings.hints;
    bool hints = CHECKED;
    for (const char *s = env_get("GORT_DEBUG"); s && *s;) {
        size_t n = strcspn(s, ",");
        if (word_is(s, n, "hints=1") || word_is(s, n, "hints=0")) hints = s[n - 1] == '1';
        s += n + (s[n] == ',');
    }
    return hints;
}
