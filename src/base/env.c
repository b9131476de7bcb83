/*
 * GORT_MAXPROCS, GORT_DEBUG, GORT_SIM, GORT_TRACE, GORT_HTTP.
 *
 * The whole library reads the environment by env_get alone (tests/script/secure.sh). In a program
 * that runs with more rights than its caller (set-user-ID, set-group-ID, file capabilities: the
 * kernel says AT_SECURE) the environment is the caller's, and the files that the variables name
 * would be written with the program's rights: there no variable is set.
 *
 * A wrong setting is ignored, with a line on stderr. All is read anew at each gort_main. GORT_DEBUG
 * is a list of name=value, explained in gort_debug(3); the table below has defaults and bounds.
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

static bool parse_signal(const char *s, size_t n, uint64_t *v) {
    static const struct {
        const char *name;
        int signo;
    } names[] = {{"urg", SIGURG},   {"usr1", SIGUSR1}, {"usr2", SIGUSR2},
                 {"prof", SIGPROF}, {"io", SIGIO},     {"winch", SIGWINCH}};
    for (size_t i = 0; i < count_of(names); i++) {
        if (!word_is(s, n, names[i].name)) continue;
        *v = (uint64_t)names[i].signo;
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

/* ---- GORT_DEBUG ----------------------------------------------------------------------------- */

typedef bool parse_fn(const char *s, size_t n, uint64_t *v);

typedef struct Setting {
    const char *name;
    size_t offset, size;
    parse_fn *parse;
    uint64_t initial, least, most;
} Setting;

#define AT(field) offsetof(Settings, field), sizeof settings.field
#define DAYS_MS (10ULL * 24 * 3600 * 1000)
static const Setting table[] = {
    {"schedtrace", AT(schedtrace), parse_u64, 0, 0, DAYS_MS},
    {"scheddetail", AT(scheddetail), parse_u64, 0, 0, 1},
    {"asyncpreemptoff", AT(asyncpreemptoff), parse_u64, 0, 0, 1},
    {"maxthreads", AT(maxthreads), parse_u64, 10000, 1, 1 << 22},
    {"stack", AT(stack_size), parse_size, 0, 16 << 10, 1 << 30},
    {"maxstack", AT(maxstack), parse_size, 1 << 30, 16 << 10, 1ULL << 34},
    {"migrate", AT(migrate), parse_u64, 0, 0, 1},
    {"stall", AT(stall), parse_u64, 0, 0, DAYS_MS},
    {"signal", AT(preempt_signal), parse_signal, SIGURG, 1, 64},
    {"retake", AT(retake), parse_retake, 0, 0, 2},
#ifdef GORT_CHECKED
    {"break", AT(break_step), parse_u64, 0, 0, 1000},
#endif
    {"uring", AT(uring), parse_u64, 1, 0, 1},
    {"relook", AT(relook), parse_u64, 1, 0, 1},
    {"flight", AT(flight), parse_u64, 0, 0, DAYS_MS},
    {"tracemax", AT(tracemax), parse_u64, TRACE_MB, 1, 1 << 20},
    {"leak", AT(leak), parse_minutes, 0, 0, 365 * DAYS_MS},
    {"forcegc", AT(forcegc), parse_minutes, 2 * 60 * 1000, 0, 365 * DAYS_MS},
};

static void set(const Setting *t, uint64_t v) {
    void *at = (char *)&settings + t->offset;
    if (t->size == sizeof(bool)) *(bool *)at = v != 0;
    else if (t->size == sizeof(int)) *(int *)at = (int)v;
    else *(uint64_t *)at = v;
}

/* "gort: GORT_DEBUG=text ignored: why", in one write. */
static void complain(const char *variable, const char *text, size_t n, const char *why) {
    char buf[512];
    Out o = OUT(-1, buf);
    out_fmt(&o, "gort: %s=", variable);
    out_bytes(&o, text, n < 100 ? n : 100);
    if (n > 100) out_str(&o, "...");
    out_fmt(&o, " ignored: %s\n", why);
    write_all(2, buf, o.used);
}

static void read_item(const char *s, size_t n) {
    const char *eq = memchr(s, '=', n);
    size_t name = eq ? (size_t)(eq - s) : n;
    for (size_t i = 0; i < count_of(table); i++) {
        const Setting *t = &table[i];
        uint64_t v = 0;
        if (!word_is(s, name, t->name)) continue;
        if (eq == NULL) complain("GORT_DEBUG", s, n, "no value");
        else if (!t->parse(eq + 1, n - name - 1, &v)) complain("GORT_DEBUG", s, n, "bad value");
        else if (v < t->least || v > t->most) complain("GORT_DEBUG", s, n, "value out of range");
        else set(t, v);
        return;
    }
    if (!word_is(s, name, "sysfault")) complain("GORT_DEBUG", s, n, "unknown name");
    else if (eq == NULL || !sysfault_rule(eq + 1, n - name - 1))
        complain("GORT_DEBUG", s, n, "bad value");
}

static void read_debug(const char *s) {
    sysfault_clear();
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

void env_read(void) {
    for (size_t i = 0; i < count_of(table); i++) set(&table[i], table[i].initial);
    read_debug(env_get("GORT_DEBUG"));
    os_cgroup_root(env_get("GORT_CGROUP_ROOT")); /* kept: the monitor must not call getenv */
    read_maxprocs(env_get("GORT_MAXPROCS"));
    read_sim(env_get("GORT_SIM"));
    keep(env_trace, sizeof env_trace, "GORT_TRACE");
    keep(env_http, sizeof env_http, "GORT_HTTP");
}
