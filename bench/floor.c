/*
 * The floors: what the bare mechanism costs with no scheduler around it.
 *
 *     floor switch|atomic|fault|futex|syscall [N]     prints `floor_NAME value ns/op`
 *     floor all
 *     floor echo ADDR | http ADDR         a hand-written epoll loop, WORKERS threads
 *
 * A workload cannot be faster than the mechanism under it: a yield is at least one switch of
 * stacks, a round trip two, an uncontended mutex two atomic operations, the first use of a stack
 * a page fault, the wake-up of another thread a futex, an echo a read and a write. The ratio of a
 * figure to its floor says what the scheduler adds, and how much is left to gain.
 *
 * The switch is a copy of its own, not the library's: it saves the six callee-saved registers and
 * nothing else, the least that two C stacks can be switched with. Nothing here uses gort.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench.h"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int64_t arg_n;

static int64_t count(int64_t preset) { return arg_n > 0 ? arg_n : preset; }

/* ---- the bare switch ----------------------------------------------------------------------- */

#ifdef __x86_64__
/* Saves where it stands in *from and goes on at to. Ends in pop and jmp: a ret would be
 * mispredicted, since it does not return to where this function was called from. */
void bare_switch(void **from, void *to);
__asm__(".text\n.globl bare_switch\n.type bare_switch,@function\nbare_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\npop %rcx\njmp *%rcx\n"
        ".size bare_switch,.-bare_switch\n");

static void *main_sp, *other_sp;

static void other(void) {
    for (;;) bare_switch(&other_sp, main_sp);
}

static void f_switch(void) {
    static _Alignas(64) char stack[16384];
    int64_t n = count(5000000);
    void **sp = (void **)(stack + sizeof stack) - 2; /* rsp is 8 modulo 16 where other begins */
    *sp = (void *)other;
    other_sp = sp - 6;
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) bare_switch(&main_sp, other_sp);
    report_nsop("floor_switch", t0, 2 * n);
}
#else
static void f_switch(void) { fprintf(stderr, "floor: no bare switch for this machine\n"); }
#endif

/* ---- memory -------------------------------------------------------------------------------- */

static void f_atomic(void) {
    int64_t n = count(20000000);
    static _Atomic int64_t word;
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) atomic_fetch_add(&word, 1);
    report_nsop("floor_atomic", t0, n);
}

static void f_fault(void) {
    int64_t n = count(50000), page = sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, (size_t)(n * page), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) exit(1);
    madvise(p, (size_t)(n * page), MADV_NOHUGEPAGE);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) *(volatile char *)(p + i * page) = 1;
    report_nsop("floor_fault", t0, n);
    munmap(p, (size_t)(n * page));
}

/* ---- the kernel ---------------------------------------------------------------------------- */

/* Whose turn it is: 0 the main thread's, 1 the other's. */
static _Atomic uint32_t turn;

static void wait_turn(uint32_t mine) {
    while (atomic_load(&turn) != mine)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !mine, NULL, NULL, 0);
}

static void give_turn(uint32_t other_one) {
    atomic_store(&turn, other_one);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *futex_other(void *arg) {
    for (int64_t n = *(int64_t *)arg; n > 0; n--) {
        wait_turn(1);
        give_turn(0);
    }
    return NULL;
}

static void f_futex(void) {
    int64_t n = count(20000);
    pthread_t th;
    if (pthread_create(&th, NULL, futex_other, &n)) exit(1);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) {
        give_turn(1);
        wait_turn(0);
    }
    report_nsop("floor_futex", t0, n);
    pthread_join(th, NULL);
}

static void f_syscall(void) {
    int64_t n = count(2000000);
    int64_t t0 = now_ns();
    for (int64_t i = 0; i < n; i++) syscall(SYS_getppid);
    report_nsop("floor_syscall", t0, n);
}

/* ---- the epoll loops ----------------------------------------------------------------------- */

/*
 * One thread accepts and deals the connections out in turn; each worker has an epoll set of its
 * own and does read and write, nothing else. Level-triggered: a read per event suffices.
 */
static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                             "Content-Length: 13\r\n\r\nHello, World!";
static int http;

/* 0: the connection has ended. Messages here are small and the reader waits for each answer, so
 * a partial write does not happen; should it, the connection is dropped and the client tells. */
static int answer_one(int fd) {
    char buf[2048];
    ssize_t n = recv(fd, buf, http ? sizeof buf : 512, MSG_DONTWAIT);
    if (n < 0) return 1;
    if (n == 0) return 0;
    if (!http) return send(fd, buf, (size_t)n, MSG_NOSIGNAL) == n;
    if (n < 4 || memcmp(buf + n - 4, "\r\n\r\n", 4)) return 0;
    return send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) == (ssize_t)sizeof answer - 1;
}

static void *epoll_worker(void *arg) {
    int ep = (int)(intptr_t)arg;
    struct epoll_event ev[256];
    for (;;) {
        int n = epoll_wait(ep, ev, 256, -1);
        for (int i = 0; i < n; i++)
            if (!answer_one(ev[i].data.fd)) close(ev[i].data.fd);
    }
    return NULL;
}

static int listen_on(const char *addr) {
    char host[64];
    const char *colon = strrchr(addr, ':');
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in sa = {.sin_family = AF_INET};
    if (!colon || fd < 0) return -1;
    snprintf(host, sizeof host, "%.*s", (int)(colon - addr), addr);
    sa.sin_port = htons((uint16_t)atoi(colon + 1));
    if (inet_pton(AF_INET, *host ? host : "0.0.0.0", &sa.sin_addr) != 1) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&sa, sizeof sa) || listen(fd, 4096)) return -1;
    return fd;
}

static void raise_limit(void) {
    struct rlimit rl;
    getrlimit(RLIMIT_NOFILE, &rl);
    rl.rlim_cur = rl.rlim_max;
    setrlimit(RLIMIT_NOFILE, &rl);
}

static int serve(const char *addr) {
    enum { MOST = 64 };
    int sets[MOST], workers = getenv("WORKERS") ? atoi(getenv("WORKERS")) : 1, one = 1;
    int listener = listen_on(addr);
    if (listener < 0) {
        fprintf(stderr, "floor: cannot listen on %s\n", addr);
        return 1;
    }
    if (workers < 1 || workers > MOST) workers = 1;
    raise_limit();
    for (int i = 0; i < workers; i++) {
        pthread_t th;
        sets[i] = epoll_create1(0);
        if (pthread_create(&th, NULL, epoll_worker, (void *)(intptr_t)sets[i])) return 1;
    }
    for (unsigned next = 0;; next++) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(sets[next % (unsigned)workers], EPOLL_CTL_ADD, fd, &ev);
    }
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} floors[] = {{"switch", f_switch},
              {"atomic", f_atomic},
              {"fault", f_fault},
              {"futex", f_futex},
              {"syscall", f_syscall}};
enum { FLOORS = sizeof floors / sizeof *floors };

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "";
    http = !strncmp(name, "http", 4);
    if (http || !strcmp(name, "echo")) return serve(arg);
    int found = 0;
    arg_n = atoll(arg);
    for (int i = 0; i < FLOORS; i++) {
        if (strcmp(name, "all") && strcmp(name, floors[i].name)) continue;
        floors[i].run();
        found = 1;
    }
    if (!found)
        fprintf(stderr, "usage: floor all|switch|atomic|fault|futex|syscall [N]"
                        " | echo ADDR | http ADDR\n");
    return found ? 0 : 2;
}
