/*
 * Bad pointers: NULL, -1, memory that is nobody's, memory that ends in the middle of what a call
 * wants. The hook's calls on a goroutine give what libc's own give on a plain thread, result and
 * errno, for each of them; where libc's own dies there is nothing to compare.
 */
#include "hook.h"
#include <dlfcn.h>
#include <limits.h>
#include <linux/futex.h>
#include <netdb.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <time.h>

static int pipe_ends[2], stream[2], packets[2], file, event, epoll_fd, inet, udp, word;
static char *page_end; /* behind it is a page that is nobody's */
static void *libc;
static volatile int minus = -1;
static void *volatile B; /* b, unknown to the compiler */

/* pages: what a call is given, at so many bytes before the end of the memory. */
typedef struct Bad {
    const char *name;
    size_t before; /* the end of the page; 0: `at` as it is */
    intptr_t at;
} Bad;
static const Bad bads[] = {
    {"NULL", 0, 0},       {"8", 0, 8},          {"-1", 0, -1},        {"-4096", 0, -4096},
    {"nobody's", 0, 1},   {"1 before", 1, 0},   {"2 before", 2, 0},   {"4 before", 4, 0},
    {"8 before", 8, 0},   {"12 before", 12, 0}, {"16 before", 16, 0}, {"20 before", 20, 0},
    {"28 before", 28, 0}, {"64 before", 64, 0},
};
enum { BADS = sizeof bads / sizeof *bads };
static void *bad_at(int i) {
    if (bads[i].before) return memset(page_end - bads[i].before, 0, bads[i].before);
    return bads[i].at == 1 ? page_end : (void *)bads[i].at;
}

static bool own; /* libc's own functions, not the hook's */
#define DO(name, ...) \
    (own ? ((__typeof__(&name))dlsym(libc, #name))(__VA_ARGS__) : name(__VA_ARGS__))
#define TV \
    &(struct timeval) { 0, 1000 }
#define TS \
    &(struct timespec) { 0, 1000 }
#define IOV \
    &(struct iovec) { b, 5 }
#define MSG(...) \
    &(struct msghdr) { __VA_ARGS__ }
#define FD(fd) fd_of(fd)
static fd_set *fd_of(int fd) {
    static fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return &set;
}

/* clang-format off */
#define CALLS(X) \
    X(nanosleep, b, NULL) X(clock_nanosleep, CLOCK_MONOTONIC, 0, b, NULL) \
    X(clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, b, NULL) X(clock_nanosleep, 99, 0, b, NULL) \
    X(clock_nanosleep, CLOCK_BOOTTIME, 0, b, NULL) \
    X(read, pipe_ends[0], b, 5) X(read, stream[0], b, 5) X(read, packets[0], b, 5) \
    X(read, file, b, 5) X(read, event, b, 8) X(read, 890, b, 5) \
    X(write, pipe_ends[1], b, 5) X(write, stream[0], b, 5) X(write, packets[0], b, 5) \
    X(write, file, b, 5) X(write, event, b, 8) X(write, 890, b, 5) \
    X(readv, pipe_ends[0], b, 1) X(readv, stream[0], b, 2) X(readv, packets[0], b, 2) \
    X(readv, file, b, 1) X(readv, event, b, 1) X(readv, 890, b, 1) X(readv, stream[0], b, minus) \
    X(readv, pipe_ends[0], b, 0) X(readv, pipe_ends[0], b, IOV_MAX + 1) \
    X(readv, pipe_ends[0], IOV, 1) X(readv, stream[0], IOV, 1) X(readv, packets[0], IOV, 1) \
    X(writev, pipe_ends[1], b, 1) X(writev, stream[0], b, 2) X(writev, packets[0], b, 2) \
    X(writev, file, b, 1) X(writev, event, b, 1) X(writev, 890, b, 1) \
    X(writev, stream[0], b, minus) \
    X(writev, pipe_ends[1], IOV, 1) X(writev, stream[0], IOV, 1) X(writev, packets[0], IOV, 1) \
    X(recv, stream[0], b, 5, 0) X(recv, packets[0], b, 5, 0) X(recv, stream[0], b, 5, MSG_WAITALL) \
    X(recv, stream[0], b, 5, MSG_PEEK) X(recv, file, b, 5, 0) \
    X(recvfrom, packets[0], &word, 4, 0, b, B) X(recvfrom, stream[0], &word, 4, 0, b, B) \
    X(recvfrom, packets[0], &word, 4, 0, NULL, b) \
    X(recvfrom, stream[0], &word, 3, MSG_WAITALL, b, B) \
    X(recvmsg, stream[0], b, 0) X(recvmsg, packets[0], b, 0) X(recvmsg, 890, b, 0) \
    X(recvmsg, stream[0], b, MSG_WAITALL) X(recvmsg, stream[0], b, MSG_WAITALL | MSG_PEEK) \
    X(recvmsg, stream[0], MSG(.msg_iov = b, .msg_iovlen = 1), 0) \
    X(recvmsg, stream[0], MSG(.msg_iov = b, .msg_iovlen = 1), MSG_WAITALL) \
    X(recvmsg, packets[0], MSG(.msg_iov = IOV, .msg_iovlen = 1), 0) \
    X(send, stream[0], b, 5, 0) X(send, packets[0], b, 5, 0) X(send, file, b, 5, 0) \
    X(sendto, packets[0], &word, 4, 0, b, 16) X(sendto, udp, &word, 4, 0, b, 16) \
    X(sendto, udp, b, 5, 0, NULL, 0) X(sendto, 890, b, 5, 0, b, 16) \
    X(sendmsg, stream[0], b, 0) X(sendmsg, packets[0], b, 0) X(sendmsg, 890, b, 0) \
    X(sendmsg, stream[0], MSG(.msg_iov = b, .msg_iovlen = 1), 0) \
    X(sendmsg, packets[0], MSG(.msg_iov = IOV, .msg_iovlen = 1), 0) \
    X(accept, stream[0], b, B) X(accept, inet, b, B) X(accept4, inet, b, B, 99) \
    X(connect, inet, b, 16) X(connect, inet, b, 28) X(connect, inet, b, 1) \
    X(connect, inet, b, 129) \
    X(connect, udp, b, 16) X(connect, udp, b, 0) X(connect, stream[0], b, 16) \
    X(connect, 890, b, 16) \
    X(poll, b, 1, 0) X(poll, b, 1, 1) X(poll, b, 3, 1) X(poll, b, 0, 1) \
    X(ppoll, b, 1, TS, NULL) X(ppoll, b, 3, TS, NULL) \
    X(select, 1, b, NULL, NULL, TV) X(select, 64, NULL, b, NULL, TV) \
    X(select, 100, NULL, NULL, b, TV) \
    X(select, 1024, b, B, NULL, TV) X(select, 5000, b, NULL, NULL, TV) X(select, 0, b, B, B, TV) \
    X(select, -1, b, B, B, TV) \
    X(pselect, 1, b, NULL, NULL, TS, NULL) X(pselect, 1024, NULL, b, NULL, TS, NULL) \
    \
    X(epoll_wait, epoll_fd, b, 1, 0) X(epoll_wait, epoll_fd, b, 1, 1) \
    X(epoll_wait, epoll_fd, b, minus, 0) \
    X(epoll_wait, 890, b, 1, 0) X(epoll_pwait, epoll_fd, b, 1, 1, NULL) \
    X(pipe, b) X(pipe2, b, 0) X(socketpair, AF_UNIX, SOCK_STREAM, 0, b) \
    X(open, b, O_RDONLY) X(fcntl, file, F_SETLKW, b) X(fcntl, file, F_SETLK, b) \
    X(waitpid, -1, b, WNOHANG) X(waitpid, -1, b, 0) \
    X(syscall, SYS_futex, b, FUTEX_WAIT, 1, TS) \
    X(syscall, SYS_futex, b, FUTEX_WAIT_PRIVATE, 0, TS) \
    X(syscall, SYS_futex, &word, FUTEX_WAIT, 1, b) \
    \
    X(syscall, SYS_futex, b, FUTEX_WAKE, 1) \
    X(syscall, SYS_futex, b, FUTEX_WAKE_BITSET, 1, NULL, NULL, 1) \
    X(syscall, SYS_futex, b, FUTEX_REQUEUE, 1, 1, b) \
    X(syscall, SYS_futex, &word, FUTEX_LOCK_PI, 0, b) \
    X(sigaction, SIGUSR1, b, NULL) X(sigaction, SIGUSR1, NULL, b) \
    X(gethostbyname_r, "127.0.0.1", b, B, 0, B, B)
/* Where NULL is a wait without end. */
#define TIMES(X) \
    X(ppoll, NULL, 0, b, NULL) \
    X(select, 0, NULL, NULL, NULL, b) \
    X(select, 1, FD(0), NULL, b, B) \
    X(pselect, 0, NULL, NULL, NULL, b, NULL) \
    X(syscall, SYS_futex, &word, FUTEX_WAIT, 0, b) \
    X(syscall, SYS_futex, &word, FUTEX_WAIT_BITSET, 0, b, NULL, -1)

#define ONE(name, ...) case __COUNTER__: return DO(name, __VA_ARGS__);
#define ONE_TIME(name, ...) case __COUNTER__: return b ? DO(name, __VA_ARGS__) : -2;
/* clang-format on */

#define TEXT(name, ...) #name "(" #__VA_ARGS__ ")",
static const char *const texts[] = {CALLS(TEXT) TIMES(TEXT)};
#define COUNT(...) +1
enum { CASES = 0 CALLS(COUNT) TIMES(COUNT) };
static long one(int call, void *b) {
    switch (call) { /* clang-format off */ CALLS(ONE) TIMES(ONE_TIME) /* clang-format on */
    }
    return -2;
}

/* Each case begins with the same: something to read everywhere, and room. */
static void make(void) {
    static const char text[] = "0123456789";
    struct epoll_event ev = {.events = EPOLLIN};
    struct timeval soon = {0, 2000};
    CHECK(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, stream) == 0 &&
          socketpair(AF_UNIX, SOCK_DGRAM, 0, packets) == 0);
    CHECK_GE(file = memfd_create("fault", 0), 0);
    CHECK_EQ(pwrite(file, text, 10, 0), 10);
    CHECK_GE(event = eventfd(3, 0), 0);
    CHECK_GE(epoll_fd = epoll_create1(0), 0);
    CHECK_EQ(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pipe_ends[0], &ev), 0);
    CHECK_GE(inet = socket(AF_INET, SOCK_STREAM, 0), 0);
    CHECK_GE(udp = socket(AF_INET, SOCK_DGRAM, 0), 0);
    int fds[] = {stream[0], packets[0], inet, udp};
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
        CHECK_EQ(setsockopt(fds[i], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon), 0);
    }
    CHECK(write(pipe_ends[1], text, 10) == 10 && write(stream[1], text, 10) == 10 &&
          write(packets[1], text, 3) == 3);
    word = 0;
}
static void unmake(void) {
    int fds[] = {pipe_ends[0], pipe_ends[1], stream[0], stream[1], packets[0], packets[1],
                 file,         event,        epoll_fd,  inet,      udp};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) close(fds[i]);
}

typedef struct Result {
    long r;
    int err;
    bool dies;
} Result;
static Result libcs[CASES][BADS];

static Result result_of(int call, int bad) {
    Result k = {0};
    make();
    void *b = bad_at(bad);
    B = b;
    errno = 0;
    k.r = one(call, b);
    k.err = k.r < 0 ? errno : 0;
    unmake();
    for (int fd = 100; k.r >= 100 && fd == k.r; fd++) close(fd);
    return k;
}

static sigjmp_buf back;
static void died(int sig) { siglongjmp(back, 1); }

static void ask_libc(void) {
    struct sigaction sa = {.sa_handler = died}, was;
    own = true;
    sigaction(SIGSEGV, &sa, &was);
    for (volatile int call = 0; call < CASES; call++)
        for (volatile int bad = 0; bad < BADS; bad++)
            if (sigsetjmp(back, 1) == 0) libcs[call][bad] = result_of(call, bad);
            else libcs[call][bad].dies = true;
    sigaction(SIGSEGV, &was, NULL);
    own = false;
}

static int run(int argc, char **argv) {
    int findings = 0;
    for (int call = 0; call < CASES; call++)
        for (int bad = 0; bad < BADS; bad++) {
            const char *text = texts[call];
            const Result *want = &libcs[call][bad];
            if (want->dies) continue;
            if (getenv("FAULT_ALL")) fprintf(stderr, "%s, b = %s\n", text, bads[bad].name);
            Result k = result_of(call, bad);
            bool fd = strncmp(text, "open", 4) == 0 || strncmp(text, "accept", 6) == 0;
            if (k.err == want->err && (k.r == want->r || (fd && k.r >= 0 && want->r >= 0)))
                continue;
            printf("%s, b = %s: libc %ld (%d), hook %ld (%d)\n", text, bads[bad].name, want->r,
                   want->err, k.r, k.err);
            fflush(stdout);
            findings++;
        }
    if (findings) FAILF("%d findings", findings);
    return 0;
}

int main(int argc, char **argv) {
    check_hooked();
    signal(SIGPIPE, SIG_IGN);
    page_end = mmap(NULL, 65536 + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page_end != MAP_FAILED);
    page_end += 65536;
    CHECK_EQ(mprotect(page_end, 4096, PROT_NONE), 0);
    CHECK((libc = dlopen("libc.so.6", RTLD_NOW)) != NULL);
    /* select reads a set up to the end of the kernel's table, which never shrinks */
    CHECK(dup2(2, 1500) == 1500 && close(1500) == 0);
    ask_libc();
    return gort_main(run, argc, argv);
}
