/*
 * A call that begins in the middle of a close, when the number has its next life already and its
 * last file still: all that it moves goes to one file. A close that takes long, fclose with a
 * megabyte to write to a socket that nobody empties; and every close by every write, held before
 * and after the kernel's close. (tests/model/life.c has every order of their steps.)
 */
#include "hook.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>

#define LONG ((size_t)1 << 20)
#define NUMBER 700
#define PEER 800
#define SOME 65536

static long raw(long r) { return r; }
#define RAW(name, ...) raw(syscall(SYS_##name, __VA_ARGS__))
static void raw_move(int *fd, int least) {
    int to = (int)RAW(fcntl, *fd, F_DUPFD_CLOEXEC, least);
    RAW(close, *fd);
    *fd = to;
}

/* A message begins with one B; a file whose first byte is another has got the rest of one. */
static char message[2 * LONG];
static void make_message(void) {
    memset(message, 'w', sizeof message);
    message[0] = 'B';
}

/* ---- a close that takes long ----------------------------------------------------------------- */

static FILE *file;
static int stranger, closed, over, held, go_on, begun;

/* In the middle of a close. */
static void hold(int sig) {
    set(&held, 1);
    while (!get(&go_on)) sched_yield();
}

static void *closes(void *arg) {
    fclose(file); /* libc writes, behind the hook, and then closes */
    CHECK_EQ(RAW(fcntl, stranger, F_DUPFD, NUMBER), NUMBER);
    set(&closed, 1);
    return NULL;
}
static void writes(void *arg) {
    ssize_t r = write(NUMBER, message, sizeof message);
    CHECK(r != 0);
    set(&over, 1);
}
static bool drain(int fd) {
    static char some[8192];
    ssize_t r = recv(fd, some, sizeof some, MSG_DONTWAIT);
    if (r > 0 && memchr(some, 'B', (size_t)r)) set(&begun, 1);
    return r > 0;
}

static void in_a_close(void) {
    pthread_t t;
    int e[2];
    char *lines = calloc(1, LONG), *room = malloc(LONG), first = 0;
    CHECK_EQ(RAW(socketpair, AF_UNIX, SOCK_STREAM, 0, e), 0);
    CHECK_EQ(dup2(e[0], NUMBER), NUMBER);
    RAW(close, e[0]);
    CHECK((file = fdopen(NUMBER, "w")) != NULL);
    CHECK_EQ(setvbuf(file, room, _IOFBF, LONG), 0);
    CHECK_EQ(fwrite(lines, 1, LONG - 1, file), LONG - 1);
    stranger = memfd_create("stranger", 0);
    CHECK_EQ(pthread_create(&t, NULL, closes, NULL), 0);
    struct pollfd p = {.fd = e[1], .events = POLLIN};
    wait_until(poll(&p, 1, 0) == 1);
    CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
    wait_until(get(&held));
    CHECK_EQ(gort_go(writes, NULL), 0);
    for (; !get(&begun); gort_yield()) drain(e[1]); /* a part is there */
    set(&go_on, 1);
    for (; !get(&over) || !get(&closed); gort_yield()) drain(e[1]);
    /* the whole call went there: it began later */
    if (pread(stranger, &first, 1, 0) == 1) CHECK_EQ(first, 'B');
    RAW(close, NUMBER), RAW(close, stranger), RAW(close, e[1]);
    CHECK_EQ(pthread_join(t, NULL), 0);
    free(lines), free(room);
}

/* ---- a close that is held -------------------------------------------------------------------- */

/* In the thread that closes, the kernel's close of the number is a signal (seccomp): its handler
 * stops there, then closes, gives the number to the next file, and stops again. */
static int at_close, next_file, close_it, come_back;

#ifdef __x86_64__
static const bool can_trap = true;
static void set_result(ucontext_t *c, long r) { c->uc_mcontext.gregs[REG_RAX] = r; }
#else
static const bool can_trap = false; /* these are run by an emulator */
static void set_result(ucontext_t *c, long r) {}
#endif
static void on_close(int sig, siginfo_t *info, void *context) {
    set(&at_close, 1);
    while (!get(&close_it)) sched_yield();
    RAW(close_range, NUMBER, NUMBER, 0);
    if (next_file >= 0) CHECK_EQ(RAW(fcntl, next_file, F_DUPFD, NUMBER), NUMBER);
    set(&at_close, 2);
    while (!get(&come_back)) sched_yield();
    set_result(context, info->si_syscall == SYS_dup3 ? NUMBER : 0);
}
static void trap_closes(void) {
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
    struct sock_filter code[] = {
        FIELD(nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_dup3, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 4),
        FIELD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NUMBER, 3, 2),
        FIELD(args[1]),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NUMBER, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

enum { CLOSE, DUP2, RANGE, FROM, GORT_CLOSE, CLOSERS };
static void *closes_held(void *how) {
    trap_closes();
    switch ((long)how) {
    case CLOSE: CHECK_EQ(close(NUMBER), 0); break;
    case DUP2: CHECK_EQ(dup2(next_file, NUMBER), NUMBER); break;
    case RANGE: CHECK_EQ(close_range(NUMBER, NUMBER, 0), 0); break;
    case FROM: closefrom(NUMBER); break;
    default: CHECK_EQ(gort_close(NUMBER), 0);
    }
    return NULL;
}

enum { WRITE, WRITEV, SEND, SENDMSG, FULL, WRITERS };
static ssize_t moved;
static void writes_some(void *how) {
    struct iovec two[2] = {{message, 1000}, {message + 1000, SOME - 1000}};
    struct msghdr msg = {.msg_iov = two, .msg_iovlen = 2};
    switch ((long)how) {
    case WRITE: moved = write(NUMBER, message, SOME); break;
    case WRITEV: moved = writev(NUMBER, two, 2); break;
    case SEND: moved = send(NUMBER, message, SOME, 0); break;
    case SENDMSG: moved = sendmsg(NUMBER, &msg, 0); break;
    default: moved = gort_write_full(NUMBER, message, SOME);
    }
    set(&over, 1);
}

/* Two ends of a stream with little room: the writer's at that number. */
static int stream(int number) {
    int e[2], small = 4096;
    CHECK_EQ(RAW(socketpair, AF_UNIX, SOCK_STREAM, 0, e), 0);
    CHECK_EQ(setsockopt(e[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    CHECK_EQ(RAW(fcntl, e[0], F_DUPFD, number), number);
    int peer = (int)RAW(fcntl, e[1], F_DUPFD_CLOEXEC, PEER - 100);
    RAW(close, e[0]), RAW(close, e[1]);
    return peer;
}
static void begin(pthread_t *closer, long how, bool known) {
    set(&at_close, 0), set(&close_it, 0), set(&come_back, 0), set(&over, 0), set(&begun, 0);
    if (known) CHECK_EQ(gort_write(NUMBER, "-", 1), 1); /* the runtime has something in its table */
    CHECK_EQ(pthread_create(closer, NULL, closes_held, (void *)how), 0);
    wait_until(get(&at_close) == 1);
}

/* Until a part is there; or it waits. On a thread without a P: the thread that closes may hold a
 * lock of the runtime's. */
static long watch(void *peer) {
    for (int i = 0; i < 50 && !get(&begun) && !get(&over); i++) drain(*(int *)peer), usleep(1000);
    set(&close_it, 1), set(&come_back, 1);
    return 0;
}

/* It begins before the kernel closes: no rest of it in the next file. */
static void before(long closer, long writer, bool known) {
    pthread_t t;
    char first = 0;
    int peer = stream(NUMBER);
    next_file = memfd_create("stranger", 0);
    if (closer == FROM) raw_move(&next_file, 200), raw_move(&peer, 200);
    begin(&t, closer, known);
    CHECK_EQ(gort_go(writes_some, (void *)writer), 0);
    gort_blocking(watch, &peer);
    CHECK_EQ(pthread_join(t, NULL), 0);
    for (; !get(&over); gort_yield()) drain(peer);
    if (pread(next_file, &first, 1, 0) == 1 && first != 'B')
        FAILF("the rest of a message: %d, closer %ld, writer %ld, known %d, moved %zd", first,
              closer, writer, known, moved);
    RAW(close, NUMBER), RAW(close, next_file), RAW(close, peer);
}

/* It begins after that, on the number's next file, while the thread that closes has not come back.
 * Where the hook has seen that the number was given anew, all of it is written. */
static void after_it(long closer, long writer, bool seen) {
    pthread_t t;
    int peer = stream(NUMBER), next = stream(PEER);
    next_file = seen ? -1 : PEER;
    begin(&t, closer, false);
    set(&close_it, 1);
    wait_until(get(&at_close) == 2);
    if (seen) CHECK_EQ(fcntl(PEER, F_DUPFD, NUMBER), NUMBER);
    CHECK_EQ(gort_go(writes_some, (void *)writer), 0);
    for (; !get(&over); gort_yield()) drain(next);
    if (seen) CHECK_EQ(moved, SOME);
    else CHECK(moved > 0 || (writer == FULL && moved == -EBADF)); /* what is moved at once */
    set(&come_back, 1);
    CHECK_EQ(pthread_join(t, NULL), 0);
    set(&over, 0);
    CHECK_EQ(gort_go(writes_some, (void *)writer), 0);
    for (; !get(&over); gort_yield()) drain(next);
    CHECK_EQ(moved, SOME);
    CHECK_EQ(close(NUMBER), 0);
    RAW(close, PEER), RAW(close, peer), RAW(close, next);
}

static int run(int argc, char **argv) {
    struct sigaction sa = {.sa_sigaction = on_close, .sa_flags = SA_SIGINFO};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, hold);
    make_message();
    in_a_close();
    if (!can_trap) return 0;
    CHECK_EQ(sigaction(SIGSYS, &sa, NULL), 0);
    for (long closer = 0; closer < CLOSERS; closer++)
        for (long writer = 0; writer < WRITERS; writer++)
            for (int known = closer == GORT_CLOSE; known < 2; known++)
                before(closer, writer, known);
    for (long writer = 0; writer < WRITERS; writer++)
        for (int seen = 0; seen < 2; seen++) after_it(CLOSE, writer, seen);
    return 0;
}

HOOK_MAIN(run)
