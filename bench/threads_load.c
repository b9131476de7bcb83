/*
 * The client of bench/threads: keeps N connections of a server busy, and looks at what the server
 * and the kernel have of them.
 *
 *     threads_load http|mariadb PORT CONNECTIONS SECONDS PID
 *
 * Closed loop: every connection has one question under way, and asks the next when the answer is
 * there. One thread and one epoll set, raw bytes and no library, so that most of the machine is the
 * server's. Each question has another number, and the answer has to have its square: of
 * tests/programs/http.c by GET, of MariaDB from a table of 1,000 rows by its key.
 *
 * First 40,000 questions, and 20 of each connection at least, warm up; then all answers are
 * awaited: the server is at rest when it is looked at, and so again behind the time that counts.
 * Prints http_100_rps, _p50, _p99 (with the time that a question waits in this client), and
 * _client, this client's processor time for a question. Of the server _cpu, its processor time for
 * one; _waits and _forced, switches of its kernel threads, by themselves and by the kernel;
 * _threads; _rss and _pss, those behind the warm-up, as MariaDB keeps half a KB for each question
 * that a connection has asked. And what the kernel has more than before the first connection:
 * _stacks, _tables (pages of the server's page tables), _slab (records of threads, maps and polls;
 * root's to read, left out otherwise). For these nothing else may begin or end on the machine.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench.h"
#include "histogram.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROWS = 1000, ROOM = 1024 };

typedef struct Conn {
    int fd;
    int number;   /* of the question */
    int answered; /* how many */
    int64_t asked;
    size_t have; /* bytes of the answer */
    uint8_t answer[ROOM];
} Conn;

typedef struct Kind {
    const char *name;
    void (*begin)(Conn *c);                         /* connected */
    size_t (*question)(int number, uint8_t *bytes); /* its size */
    int (*answered)(const Conn *c);                 /* 1: there is all of it */
} Kind;

static const Kind *kind;
static struct sockaddr_in server;
static Histogram answers;

__attribute__((format(printf, 1, 2))) _Noreturn static void fail(const char *words, ...) {
    va_list args;
    va_start(args, words);
    fputs("threads_load: ", stderr);
    vfprintf(stderr, words, args);
    fputc('\n', stderr);
    exit(1);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static void http_begin(Conn *c) { (void)c; }

static size_t http_question(int number, uint8_t *bytes) {
    return (size_t)sprintf((char *)bytes, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", number);
}

static int http_answered(const Conn *c) {
    static const char status[] = "HTTP/1.1 200 OK\r\n";
    char body[64];
    int size = sprintf(body, "%d squared is %d\n", c->number, c->number * c->number);
    const uint8_t *at = memmem(c->answer, c->have, "\r\n\r\n", 4);
    size_t rest = at ? c->have - (size_t)(at + 4 - c->answer) : 0;
    if (rest < (size_t)size) return 0;
    if (rest > (size_t)size || memcmp(at + 4, body, rest) != 0 ||
        memcmp(c->answer, status, sizeof status - 1) != 0)
        fail("a wrong answer: %.*s", (int)c->have, (const char *)c->answer);
    return 1;
}

/* ---- MariaDB: its protocol, as far as it is needed ------------------------------------------- */

enum { OK = 0, END_OF_PART = 0xfe, ERROR = 0xff, QUERY = 3 };

/* A packet: 3 bytes with the size of what follows, one that counts. 0: it is not all there. */
static size_t packet_size(const uint8_t *p, size_t have) {
    if (have < 4) return 0;
    size_t size = 4 + (size_t)(p[0] | p[1] << 8 | p[2] << 16);
    return size <= have ? size : 0;
}

static void packet_head(uint8_t *p, size_t size, uint8_t count) {
    uint8_t head[] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16), count};
    memcpy(p, head, sizeof head);
}

static void packet_await(Conn *c) {
    for (c->have = 0; packet_size(c->answer, c->have) == 0;) {
        ssize_t n = recv(c->fd, c->answer + c->have, ROOM - c->have, 0);
        if (n <= 0) fail("no greeting: %s", n < 0 ? strerror(errno) : "closed");
        c->have += (size_t)n;
    }
    if (c->answer[4] == ERROR) fail("%.*s", (int)c->have - 7, (const char *)c->answer + 7);
}

/* root, without a password, into the database test. */
static void mariadb_begin(Conn *c) {
    enum { LONG_PASSWORD = 1, WITH_DATABASE = 8, PROTOCOL_41 = 0x200, SECURE = 0x8000 };
    static const uint32_t flags = LONG_PASSWORD | WITH_DATABASE | PROTOCOL_41 | SECURE;
    static const char names[] = "root\0\0test"; /* between them the size of the password */
    uint8_t login[4 + 32 + sizeof names] = {[11] = 1, [12] = 33}; /* a limit, utf8 */
    packet_await(c);
    packet_head(login, sizeof login - 4, 1);
    memcpy(login + 4, &flags, sizeof flags);
    memcpy(login + 36, names, sizeof names);
    if (send(c->fd, login, sizeof login, 0) != sizeof login) fail("send: %s", strerror(errno));
    packet_await(c);
    if (c->answer[4] != OK) fail("the server wants another way to log in");
}

static size_t mariadb_question(int number, uint8_t *bytes) {
    int n = sprintf((char *)bytes + 5, "select square from numbers where id = %d", number);
    packet_head(bytes, (size_t)n + 1, 0);
    bytes[4] = QUERY;
    return (size_t)n + 5;
}

/* How many columns, the column, an end, the row, an end. */
static int mariadb_answered(const Conn *c) {
    char square[16];
    int size = sprintf(square, "%d", c->number * c->number), packets = 0;
    const uint8_t *row = NULL, *last = c->answer, *end = c->answer + c->have, *p = c->answer;
    for (size_t n; packets < 5 && (n = packet_size(p, (size_t)(end - p))) > 0; p += n) {
        if (packets == 0 && p[4] == ERROR) fail("%.*s", (int)n - 7, (const char *)p + 7);
        if (++packets == 4) row = p;
        last = p;
    }
    if (packets < 5) return 0;
    if (p != end || last[4] != END_OF_PART || row[4] != size ||
        memcmp(row + 5, square, (size_t)size) != 0)
        fail("a wrong answer to %d", c->number);
    return 1;
}

static const Kind kinds[] = {{"http", http_begin, http_question, http_answered},
                             {"mariadb", mariadb_begin, mariadb_question, mariadb_answered}};

/* ---- the load -------------------------------------------------------------------------------- */

static void connect_one(Conn *c) {
    struct linger gone = {1, 0}; /* a reset at the end: thousands in TIME_WAIT eat the ports up */
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&server, sizeof server) != 0)
        fail("connect: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &gone, sizeof gone);
    kind->begin(c);
}

static int listen_to(Conn *all, int n) {
    int ep = epoll_create1(0);
    for (int i = 0; i < n; i++) {
        struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = &all[i]};
        if (epoll_ctl(ep, EPOLL_CTL_ADD, all[i].fd, &ev) != 0) fail("%s", strerror(errno));
    }
    return ep;
}

static void ask(Conn *c) {
    static uint64_t random = 1;
    uint8_t bytes[128];
    c->number = (int)(next_random(&random) % ROWS);
    c->have = 0;
    size_t n = kind->question(c->number, bytes);
    c->asked = now_ns();
    if (send(c->fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n) fail("send: %s", strerror(errno));
}

static int hear(Conn *c) {
    ssize_t n = recv(c->fd, c->answer + c->have, ROOM - c->have, 0);
    if (n <= 0) fail("the server closed the connection");
    c->have += (size_t)n;
    return kind->answered(c);
}

/* Asks on all connections until the time is over and each has had so many answers. Returns when all
 * is answered. */
static void drive(Conn *all, int n, int ep, double seconds, int least) {
    struct epoll_event ev[256];
    int64_t until = now_ns() + (int64_t)(seconds * 1e9);
    for (int i = 0; i < n; i++) ask(&all[i]);
    for (int waiting = n; waiting > 0;) {
        int came = epoll_wait(ep, ev, 256, 60000);
        if (came <= 0) fail("no answer within a minute");
        for (int i = 0; i < came; i++) {
            Conn *c = ev[i].data.ptr;
            if (!hear(c)) continue;
            int64_t now = now_ns();
            histogram_add(&answers, now - c->asked);
            if (now < until || ++c->answered < least) ask(c);
            else waiting--;
        }
    }
}

/* ---- the server, and the kernel -------------------------------------------------------------- */

typedef struct Look {
    double cpu; /* seconds */
    long waits, forced, threads;
    double rss, pss, tables; /* KB, as those below */
    double stacks, slab;
} Look;

/* The number behind `key` at the beginning of a line; 0 where there is none. */
static double number_in(const char *text, const char *key) {
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, strlen(key)) == 0) return atof(line + strlen(key));
    }
    return 0;
}

/* A file of /proc, valid until the next; "" where it cannot be read. */
__attribute__((format(printf, 1, 2))) static const char *proc_text(const char *path, ...) {
    static char text[1 << 18];
    char full[128];
    va_list args;
    va_start(args, path);
    vsnprintf(full, sizeof full, path, args);
    va_end(args);
    FILE *f = fopen(full, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    return text;
}

/* 14 and 15 of the fields, which follow the name in brackets. */
static double cpu_of(int pid) {
    unsigned long user, sys;
    const char *end = strrchr(proc_text("/proc/%d/stat", pid), ')');
    if (!end ||
        sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys) != 2)
        fail("there is no process %d", pid);
    return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

static void look_at_threads(int pid, Look *l) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        if (*e->d_name == '.') continue;
        const char *text = proc_text("/proc/%d/task/%s/status", pid, e->d_name);
        l->threads++;
        l->waits += (long)number_in(text, "voluntary_ctxt_switches:");
        l->forced += (long)number_in(text, "nonvoluntary_ctxt_switches:");
    }
    if (dir) closedir(dir);
}

/* Of the caches that threads, their maps, and a poller use. */
static double slab_kb(void) {
    static const char *const caches[] = {"task_struct",    "pid ",          "vm_area_struct",
                                         "maple_node",     "anon_vma ",     "anon_vma_chain",
                                         "eventpoll_epi ", "eventpoll_pwq "};
    const char *text = proc_text("/proc/slabinfo");
    double sum = 0;
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        char key[32];
        unsigned long used, all, size;
        snprintf(key, sizeof key, "\n%s", caches[i]);
        const char *line = strstr(text, key);
        if (line && sscanf(line, "%*s %lu %lu %lu", &used, &all, &size) == 3)
            sum += (double)(used * size) / 1024;
    }
    return sum;
}

static Look look(int pid) {
    Look l = {.cpu = cpu_of(pid)};
    look_at_threads(pid, &l);
    const char *text = proc_text("/proc/%d/status", pid);
    l.rss = number_in(text, "VmRSS:");
    l.tables = number_in(text, "VmPTE:");
    l.pss = number_in(proc_text("/proc/%d/smaps_rollup", pid), "Pss:");
    l.stacks = number_in(proc_text("/proc/meminfo"), "KernelStack:");
    l.slab = slab_kb();
    return l;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void print(int n, const char *what, double value, const char *unit) {
    char name[64];
    snprintf(name, sizeof name, "%s_%d_%s", kind->name, n, what);
    report(name, value, unit);
}

typedef struct Run {
    int n;
    double seconds, client; /* that counted; of them on a processor */
    Look first, before, after;
} Run;

static void print_all(const Run *r) {
    const Look *before = &r->before, *after = &r->after;
    double each = 1 / (double)answers.count;
    int n = r->n;
    print(n, "rps", (double)answers.count / r->seconds, "req/s");
    print(n, "p50", histogram_us(&answers, .5), "us");
    print(n, "p99", histogram_us(&answers, .99), "us");
    print(n, "cpu", (after->cpu - before->cpu) * 1e6 * each, "us/req");
    print(n, "client", r->client * 1e6 * each, "us/req");
    print(n, "waits", (double)(after->waits - before->waits) * each, "/req");
    print(n, "forced", (double)(after->forced - before->forced) * each, "/req");
    print(n, "threads", (double)after->threads, "threads");
    print(n, "rss", before->rss / 1024, "MB");
    print(n, "pss", before->pss / 1024, "MB");
    print(n, "stacks", (after->stacks - r->first.stacks) / 1024, "MB");
    print(n, "tables", (after->tables - r->first.tables) / 1024, "MB");
    if (after->slab > 0) print(n, "slab", (after->slab - r->first.slab) / 1024, "MB");
}

static void run(int n, double seconds, int pid) {
    Run r = {.n = n, .first = look(pid)};
    Conn *all = must(calloc((size_t)n, sizeof *all));
    for (int i = 0; i < n; i++) connect_one(&all[i]);
    int ep = listen_to(all, n);
    drive(all, n, ep, 0, n < 2000 ? 40000 / n : 20);
    r.before = look(pid);
    answers = (Histogram){0};
    double client = cpu_seconds();
    int64_t start = now_ns();
    drive(all, n, ep, seconds, 0);
    r.seconds = (double)(now_ns() - start) / 1e9;
    r.client = cpu_seconds() - client;
    close(ep); /* the kernel's records of it are not the server's */
    usleep(200000);
    r.after = look(pid);
    print_all(&r);
    for (int i = 0; i < n; i++) close(all[i].fd);
    free(all);
}

static void raise_limit(void) {
    struct rlimit rl;
    getrlimit(RLIMIT_NOFILE, &rl);
    rl.rlim_cur = rl.rlim_max;
    setrlimit(RLIMIT_NOFILE, &rl);
}

int main(int argc, char **argv) {
    for (size_t i = 0; argc == 6 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(argv[1], kinds[i].name) == 0) kind = &kinds[i];
    if (kind == NULL || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: threads_load http|mariadb PORT CONNECTIONS SECONDS PID\n");
        return 2;
    }
    server =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    inet_pton(AF_INET, "127.0.0.1", &server.sin_addr);
    raise_limit();
    run(atoi(argv[3]), atof(argv[4]), atoi(argv[5]));
    return 0;
}
