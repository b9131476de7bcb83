/*
 * Every hooked function, called in every kind of child of a goroutine's thread, of a plain one and
 * of a goroutine that is a thread to libc, while goroutines run: fork, _Fork (no handlers of
 * pthread_atfork), a bare clone, vfork and clone(CLONE_VM | CLONE_VFORK), which share the parent's
 * memory, and a vfork that no function of libc made. The child comes to its end, none of the
 * parent's goroutines runs in it, and the parent finds its descriptors as it left them: whoever
 * waits on a number that the child has closed or replaced still gets what comes, and nothing is
 * noted about a number of the child's. tests/script/child.sh sees that no name is forgotten here,
 * and where the hook's notes are.
 */
#include "hook.h"
#include <link.h>
#include <linux/futex.h>
#include <netdb.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/un.h>
#include <threads.h>
#include <time.h>

static struct Shared { /* between parent and child, whatever the kind */
    int ran_in_child, parent;
} * shared;

static int feed[2], quiet[2], pair[2], listener, file, epoll_fd, parked[2], stop, beats, got;
static char buf[64];
static struct sockaddr_un at;
static socklen_t at_size;
static struct iovec iov = {buf, 1};
static struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
/* One bucket of the hook's queue: 256 words. The first is waited for by a goroutine, the others are
 * the child's. */
static union {
    _Alignas(2048) char room[2048];
    sem_t sem;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    pthread_once_t once;
} same[10];
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t held_rw = PTHREAD_RWLOCK_INITIALIZER;

#define bare(nr, ...) syscall(nr, ##__VA_ARGS__)

static void nothing(void) {}
static struct timespec *soon(clockid_t clock) {
    static struct timespec ts;
    clock_gettime(clock, &ts);
    ts.tv_nsec += 1000000;
    if (ts.tv_nsec >= 1000000000) ts.tv_sec++, ts.tv_nsec -= 1000000000;
    return &ts;
}
static struct timespec ms1 = {0, 1000000};
static struct timeval tv1;
static fd_set *set_of(int fd) {
    static fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    tv1 = (struct timeval){0, 1000};
    return &set;
}
static struct pollfd pfd;
static struct pollfd *poll_quiet(void) {
    pfd = (struct pollfd){.fd = quiet[0], .events = POLLIN};
    return &pfd;
}
static struct epoll_event event;
static sigset_t empty_mask;
static struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST}, *found;
static struct hostent host, *host_found;
static int error, fds[2];
static pthread_key_t key;

ssize_t __read_chk(int fd, void *to, size_t n, size_t size);
ssize_t __recv_chk(int fd, void *to, size_t n, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t n, size_t size, int flags, void *sa, void *len);
int __poll_chk(struct pollfd *p, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *p, nfds_t n, const struct timespec *ts, const sigset_t *mask,
                size_t size);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

/* The number that a goroutine waits on is the lowest free one from here on. */
#define again(call) (close(parked[0]), (call))

/* The parent has a handler for SIGUSR2 as it is, and one for SIGWINCH on the alternate stack: the
 * child sets each the other way. */
static void on_signal(int signo) {}
extern sighandler_t bsd_signal(int signo, sighandler_t handler);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* sigset */
static int set_both(sighandler_t (*install)(int signo, sighandler_t handler)) {
    return (install(SIGUSR2, SIG_DFL) == SIG_ERR) + (install(SIGWINCH, on_signal) == SIG_ERR);
}
static int set_handler(int signo, sighandler_t handler, int flags) {
    return sigaction(signo, &(struct sigaction){.sa_handler = handler, .sa_flags = flags}, NULL);
}
static bool on_alternate_stack(int signo) {
    struct sigaction now;
    CHECK_EQ(sigaction(signo, NULL, &now), 0);
    CHECK(now.sa_handler == on_signal);
    return now.sa_flags & SA_ONSTACK;
}
static bool handlers_same(void) {
    return !on_alternate_stack(SIGUSR2) && on_alternate_stack(SIGWINCH);
}

/* clang-format off */
#define CALLS(X) \
    X(read, read(feed[0], buf, 1)) X(readv, readv(feed[0], &iov, 1)) \
    X(__read_chk, __read_chk(feed[0], buf, 1, 64)) X(write, write(pair[1], "x", 1)) \
    X(writev, writev(pair[1], &iov, 1)) X(recv, recv(pair[0], buf, 1, 0)) \
    X(recvfrom, recvfrom(pair[0], buf, 1, 0, NULL, NULL)) X(recvmsg, recvmsg(pair[0], &msg, 0)) \
    X(__recv_chk, __recv_chk(pair[0], buf, 1, 64, 0)) \
    X(__recvfrom_chk, __recvfrom_chk(pair[0], buf, 1, 64, 0, NULL, NULL)) \
    X(send, send(pair[1], "x", 1, 0)) X(sendto, sendto(pair[1], "x", 1, 0, NULL, 0)) \
    X(sendmsg, sendmsg(pair[1], &msg, 0)) X(accept, accept(listener, NULL, NULL)) \
    X(accept4, accept4(listener, NULL, NULL, 0)) \
    X(connect, connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&at, at_size)) \
    X(poll, poll(poll_quiet(), 1, 1)) X(__poll_chk, __poll_chk(poll_quiet(), 1, 1, 64)) \
    X(ppoll, ppoll(poll_quiet(), 1, &ms1, NULL)) \
    X(__ppoll_chk, __ppoll_chk(poll_quiet(), 1, &ms1, &empty_mask, 64)) \
    X(select, select(quiet[0] + 1, set_of(quiet[0]), NULL, NULL, &tv1)) \
    X(pselect, pselect(quiet[0] + 1, set_of(quiet[0]), NULL, NULL, &ms1, NULL)) \
    X(epoll_wait, epoll_wait(epoll_fd, &event, 1, 1)) \
    X(epoll_pwait, epoll_pwait(epoll_fd, &event, 1, 1, &empty_mask)) \
    X(sched_yield, sched_yield()) X(thrd_yield, (thrd_yield(), 0)) X(sleep, (int)sleep(0)) \
    X(usleep, usleep(1000)) X(nanosleep, nanosleep(&ms1, NULL)) \
    X(clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, 0, &ms1, NULL)) \
    X(getaddrinfo, getaddrinfo("127.0.0.1", NULL, &numeric, &found)) \
    X(gethostbyname_r, gethostbyname_r("127.0.0.1", &host, room, sizeof room, &host_found, \
        &error)) X(socket, again(socket(AF_UNIX, SOCK_DGRAM, 0))) \
    X(socketpair, again(socketpair(AF_UNIX, SOCK_STREAM, 0, fds))) X(pipe, again(pipe(fds))) \
    X(pipe2, again(pipe2(fds, O_NONBLOCK))) X(eventfd, again(eventfd(0, 0))) \
    X(close, close(parked[0]) + close(feed[0]) + close(pair[0]) + close(listener)) \
    X(dup, again(dup(file))) \
    X(dup2, dup2(file, parked[0]) + dup2(file, feed[0]) + dup2(pair[0], 1)) \
    X(dup3, dup3(file, parked[0], O_CLOEXEC)) X(fcntl, again(fcntl(file, F_DUPFD, 0))) \
    X(fcntl64, again(fcntl64(file, F_DUPFD_CLOEXEC, 0)) + fcntl64(again(open("/dev/null", \
        O_RDWR)), F_SETFL, O_NONBLOCK)) \
    X(sigaction, set_handler(SIGUSR2, SIG_DFL, 0) + set_handler(SIGWINCH, on_signal, 0)) \
    X(signal, set_both(signal)) X(__sysv_signal, set_both(__sysv_signal)) \
    X(sysv_signal, set_both(sysv_signal)) X(bsd_signal, set_both(bsd_signal)) \
    X(ssignal, set_both(ssignal)) X(sigset, set_both(sigset)) \
    X(sigaltstack, sigaltstack(NULL, &(stack_t){0})) \
    X(open, again(open("/dev/null", O_RDWR))) X(open64, again(open64("/dev/null", O_RDWR))) \
    X(__open_2, again(__open_2("/dev/null", O_RDONLY))) \
    X(__open64_2, again(__open64_2("/dev/null", O_RDONLY))) X(fsync, fsync(file)) \
    X(fdatasync, fdatasync(file)) X(flock, flock(file, LOCK_SH)) \
    X(waitpid, (int)waitpid(-1, &error, 0)) X(system, system("exit 0")) \
    X(pthread_mutex_lock, pthread_mutex_lock(&same[1].mutex)) \
    X(pthread_mutex_unlock, pthread_mutex_unlock(&same[1].mutex)) \
    X(pthread_mutex_trylock, pthread_mutex_trylock(&held)) \
    X(pthread_mutex_timedlock, pthread_mutex_timedlock(&held, soon(CLOCK_REALTIME))) \
    X(pthread_mutex_clocklock, pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, \
        soon(CLOCK_MONOTONIC))) X(pthread_rwlock_rdlock, pthread_rwlock_rdlock(&same[2].rwlock)) \
    X(pthread_rwlock_wrlock, pthread_rwlock_wrlock(&same[3].rwlock)) \
    X(pthread_rwlock_timedrdlock, pthread_rwlock_timedrdlock(&held_rw, soon(CLOCK_REALTIME))) \
    X(pthread_rwlock_timedwrlock, pthread_rwlock_timedwrlock(&held_rw, soon(CLOCK_REALTIME))) \
    X(pthread_rwlock_clockrdlock, pthread_rwlock_clockrdlock(&held_rw, CLOCK_MONOTONIC, \
        soon(CLOCK_MONOTONIC))) \
    X(pthread_rwlock_clockwrlock, pthread_rwlock_clockwrlock(&held_rw, CLOCK_MONOTONIC, \
        soon(CLOCK_MONOTONIC))) \
    X(pthread_rwlock_unlock, pthread_rwlock_rdlock(&same[4].rwlock) + \
        pthread_rwlock_unlock(&same[4].rwlock)) \
    X(pthread_cond_timedwait, pthread_cond_timedwait(&same[5].cond, &same[6].mutex, \
        soon(CLOCK_REALTIME))) \
    X(pthread_cond_clockwait, pthread_cond_clockwait(&same[5].cond, &same[6].mutex, \
        CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC))) \
    X(pthread_cond_signal, pthread_cond_signal(&same[5].cond)) \
    X(pthread_cond_broadcast, pthread_cond_broadcast(&same[5].cond)) \
    X(sem_wait, sem_wait(&same[7].sem)) \
    X(sem_timedwait, sem_timedwait(&same[8].sem, soon(CLOCK_REALTIME))) \
    X(sem_clockwait, sem_clockwait(&same[8].sem, CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC))) \
    X(sem_post, sem_post(&same[9].sem)) X(pthread_barrier_init, barrier_of_one()) \
    X(pthread_barrier_wait, barrier_of_one()) X(pthread_barrier_destroy, barrier_of_one()) \
    X(pthread_once, pthread_once(&once, nothing)) \
    X(pthread_join, pthread_join(pthread_self(), NULL)) \
    X(pthread_key_create, pthread_key_create(&key, NULL)) \
    X(pthread_key_delete, pthread_key_delete(key)) \
    X(pthread_getspecific, pthread_getspecific(key) != NULL) \
    X(pthread_setspecific, pthread_setspecific(key, buf)) \
    X(pthread_rwlock_trywrlock, pthread_rwlock_trywrlock(&same[3].rwlock)) \
    X(siginterrupt, siginterrupt(SIGUSR2, 0)) \
    X(pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock(&same[4].rwlock) + \
        pthread_rwlock_unlock(&same[4].rwlock)) \
    X(fclose, again(fclose(fopen("/dev/null", "r")))) \
    X(close_range, close_range((unsigned)parked[0], ~0u, 0)) \
    X(closefrom, (closefrom(parked[0]), 0)) \
    X(freopen, again(freopen("/dev/null", "r", fopen("/dev/zero", "r")) == NULL)) \
    X(freopen64, again(freopen64("/dev/null", "r", fopen("/dev/zero", "r")) == NULL)) \
    X(syscall, (int)syscall(SYS_futex, same + 9, FUTEX_WAIT, 0, &ms1) + (int)syscall(SYS_futex, \
        same, FUTEX_WAKE, 1)) X(mtx_lock, mtx_lock((mtx_t *)&same[1].mutex)) \
    X(mtx_unlock, mtx_unlock((mtx_t *)&same[1].mutex)) \
    X(mtx_trylock, mtx_trylock((mtx_t *)&held)) \
    X(mtx_timedlock, mtx_timedlock((mtx_t *)&held, soon(CLOCK_REALTIME))) \
    X(cnd_timedwait, cnd_timedwait((cnd_t *)&same[5].cond, (mtx_t *)&same[6].mutex, \
        soon(CLOCK_REALTIME))) X(cnd_signal, cnd_signal((cnd_t *)&same[5].cond)) \
    X(cnd_broadcast, cnd_broadcast((cnd_t *)&same[5].cond)) \
    X(call_once, (call_once((once_flag *)&once, nothing), 0)) \
    X(thrd_join, thrd_join(thrd_current(), NULL)) X(thrd_sleep, thrd_sleep(&ms1, NULL)) \
    X(tss_create, tss_create(&key, NULL)) X(tss_delete, (tss_delete(key), 0)) \
    X(tss_get, tss_get(key) != NULL) X(tss_set, tss_set(key, buf))
/* clang-format on */

static char room[1024];
static int barrier_of_one(void) {
    pthread_barrier_t b;
    int made = pthread_barrier_init(&b, NULL, 1), waited = pthread_barrier_wait(&b);
    return made * 100 + waited * 10 + pthread_barrier_destroy(&b);
}
static pthread_once_t once;
#define FUNCTION(name, call) \
    static void call_##name(void) { (void)!(call); }
CALLS(FUNCTION)
#define ENTRY(name, call) {#name, call_##name},
static const struct Call {
    const char *name;
    void (*fn)(void);
} calls[] = {CALLS(ENTRY)};

/* ---- children ------------------------------------------------------------------------------- */

enum { FORK, BARE_FORK, BARE_CLONE, VFORK, CLONE, BARE_VFORK, KINDS };
static const char *const kinds[] = {"fork", "_Fork", "bare clone", "vfork", "clone", "bare vfork"};
pid_t _Fork(void) __attribute__((weak)); /* glibc 2.34 */

static _Noreturn __attribute__((noinline)) void child(void (*fn)(void)) {
    alarm(100); /* a hang becomes a signal: no handler of the parent's has it */
    fn();
    bare(SYS_exit_group, 0);
    __builtin_unreachable();
}
static int child_of_clone(void *fn) { child((void (*)(void))fn); }

static _Alignas(16) char clone_stack[256 << 10];

static __attribute__((noinline)) pid_t start(int kind, void (*fn)(void)) {
    pid_t pid = -1;
    switch (kind) {
    case FORK: pid = fork(); break;
    case BARE_FORK: pid = _Fork ? _Fork() : fork(); break;
    case BARE_CLONE: pid = (pid_t)bare(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L); break;
    case VFORK: pid = vfork(); break;
    case CLONE:
        return clone(child_of_clone, clone_stack + sizeof clone_stack,
                     CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)fn);
#ifdef __x86_64__
    default: {
        long r;
        __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_vfork) : "rcx", "r11", "memory");
        pid = (pid_t)r;
    }
#else
    default: pid = vfork();
#endif
    }
    if (pid == 0) child(fn);
    return pid;
}

/* ---- what the hook has noted ---------------------------------------------------------------- */

static char *notes, *notes_before;
static size_t notes_size;

static int find_hook(struct dl_phdr_info *info, size_t size, void *base) {
    if (strstr(info->dlpi_name, "libgort-hook.so")) *(uintptr_t *)base = info->dlpi_addr;
    return 0;
}

/* HOOK_NOTES=offset,size of fd_hints in libgort-hook.so */
static void find_notes(void) {
    const char *text = getenv("HOOK_NOTES");
    uintptr_t base = 0;
    unsigned long offset;
    if (text == NULL || sscanf(text, "%lx,%zx", &offset, &notes_size) != 2) return;
    dl_iterate_phdr(find_hook, &base);
    notes = (char *)base + offset;
    notes_before = malloc(notes_size);
}

/* A vfork that nobody has told the hook of may change hints, which cost a look; not what the
 * runtime knows of a number (the first of 32 bytes). */
static bool notes_same(int kind) {
    for (size_t i = 0; notes && i < notes_size; i += kind == BARE_VFORK ? 32 : 1)
        if (notes[i] != notes_before[i]) return false;
    return true;
}

/* ---- the parent ----------------------------------------------------------------------------- */

static void *feeder(void *arg) {
    int n;
    while (!get(&stop)) {
        if (bare(SYS_ioctl, feed[0], FIONREAD, &n) == 0 && n == 0) bare(SYS_write, feed[1], "x", 1);
        if (bare(SYS_ioctl, pair[0], FIONREAD, &n) == 0 && n == 0) bare(SYS_write, pair[1], "x", 1);
        struct pollfd p = {.fd = listener, .events = POLLIN};
        struct timespec t = {0, 0};
        if (bare(SYS_ppoll, &p, 1, &t, NULL, 0) == 0) {
            long fd = bare(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
            bare(SYS_connect, fd, &at, at_size);
            bare(SYS_close, fd);
        }
        t.tv_nsec = 200000;
        bare(SYS_nanosleep, &t, NULL);
    }
    return NULL;
}

/* Says where it runs: in no child. */
static void beat(void *arg) {
    while (!get(&stop)) {
        if (bare(SYS_getpid) != shared->parent) {
            shared->ran_in_child = 1;
            bare(SYS_exit_group, 98);
        }
        add(&beats, 1);
        gort_yield();
    }
}

static void reader(void *arg) {
    char c;
    while (read(parked[0], &c, 1) == 1 && c != 'e') add(&got, 1);
    add(&got, 1000000);
}

static void waiter(void *arg) { CHECK_EQ(sem_wait(&same[0].sem), 0); }

typedef struct Case {
    int kind;
    const struct Call *call;
    int status, over;
} Case;

static void *run_case(void *arg) {
    Case *c = arg;
    pid_t pid = start(c->kind, c->call->fn);
    CHECK_GT(pid, 0);
    while (bare(SYS_wait4, pid, &c->status, 0, NULL) < 0) {}
    return NULL;
}

static void run_body(void *arg) {
    run_case(arg);
    set(&((Case *)arg)->over, 1);
}

enum By { GOROUTINE, PLAIN, BODY, BYS };
static const char *const bys[] = {"goroutine", "plain thread", "goroutine that is a thread"};

static int bad;
static void wrong(const Case *c, enum By by, const char *what) {
    printf("%s in a child (%s) of a %s: %s, status 0x%x\n", c->call->name, kinds[c->kind], bys[by],
           what, c->status);
    bad++;
}

static void try_one(int kind, const struct Call *call, enum By by) {
    Case c = {.kind = kind, .call = call};
    int before = get(&got), beat_before;
    once = (pthread_once_t)PTHREAD_ONCE_INIT;
    pthread_mutex_init(&same[1].mutex, NULL);
    if (call->fn == call_pthread_mutex_unlock || call->fn == call_mtx_unlock)
        pthread_mutex_lock(&same[1].mutex);
    for (int i = 2; i <= 4; i++) pthread_rwlock_init(&same[i].rwlock, NULL);
    pthread_mutex_init(&same[6].mutex, NULL);
    pthread_mutex_lock(&same[6].mutex);
    sem_init(&same[7].sem, 0, 1);
    pthread_key_create(&key, NULL);
    if (notes) memcpy(notes_before, notes, notes_size);
    if (by == PLAIN) {
        pthread_t t;
        CHECK_EQ(pthread_create(&t, NULL, run_case, &c), 0);
        while (pthread_tryjoin_np(t, NULL) == EBUSY) gort_yield();
    } else if (by == BODY && gort_go_with(&(gort_attr){.thread = 1}, run_body, &c) == 0) {
        wait_until(get(&c.over));
    } else {
        run_case(&c);
    }
    if (!notes_same(kind)) wrong(&c, by, "it has left notes with the parent");
    if (!handlers_same()) wrong(&c, by, "it has changed what the parent sees of its handlers");
    if (shared->ran_in_child) wrong(&c, by, "a goroutine ran in it");
    else if (WIFSIGNALED(c.status))
        wrong(&c, by, WTERMSIG(c.status) == SIGALRM ? "it hung" : "it died");
    else if (WEXITSTATUS(c.status) != 0) wrong(&c, by, "it failed");
    shared->ran_in_child = 0;
    beat_before = get(&beats);
    wait_until(get(&beats) > beat_before + 1); /* the others go on */
    CHECK_EQ(write(parked[1], "x", 1), 1);     /* and whoever waited still gets what comes */
    wait_until(get(&got) != before);
    if (get(&got) != before + 1) wrong(&c, by, "who waited got an error"), exit(1);
    /* by then it has put right what a bare vfork may have left at its number */
    wait_until(waiting_for("IO wait") >= 1);
    if (call->fn == call_pthread_key_delete || call->fn == call_tss_delete) return;
    pthread_key_delete(key);
}

static int body(int argc, char **argv) {
    static pthread_t thread;
    CHECK_EQ(pipe(parked), 0);
    CHECK_EQ(pipe(feed), 0);
    CHECK_EQ(pipe(quiet), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_GE(listener = socket(AF_UNIX, SOCK_STREAM, 0), 0);
    at.sun_family = AF_UNIX;
    at_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                          (size_t)sprintf(at.sun_path + 1, "gort-child-%d", getpid()));
    CHECK_EQ(bind(listener, (void *)&at, at_size), 0);
    CHECK_EQ(listen(listener, 128), 0);
    CHECK_GE(file = open("/tmp", O_TMPFILE | O_RDWR, 0600), 0);
    CHECK_GE(epoll_fd = epoll_create1(0), 0);
    pthread_mutex_lock(&held);
    pthread_rwlock_wrlock(&held_rw);
    sem_init(&same[0].sem, 0, 0);
    sem_init(&same[8].sem, 0, 0);
    sem_init(&same[9].sem, 0, 0);
    pthread_cond_init(&same[5].cond, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, feeder, NULL), 0);
    for (int i = 0; i < 3; i++) gort_go(beat, NULL);
    gort_go(reader, NULL);
    gort_go(waiter, NULL);
    wait_until(waiting_for("IO wait") >= 1);
    const char *only = getenv("CHILD_CALL");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int kind = 0; kind < KINDS && (only == NULL || strcmp(only, calls[i].name) == 0);
             kind++)
            for (int by = 0; by < BYS; by++) try_one(kind, &calls[i], (enum By)by);
    set(&stop, 1);
    CHECK_EQ(write(parked[1], "e", 1), 1);
    sem_post(&same[0].sem);
    pthread_join(thread, NULL);
    wait_until(gort_count() == 1);
    printf("%d wrong\n", bad);
    return bad != 0;
}

int main(int argc, char **argv) {
    check_hooked();
    setvbuf(stdout, NULL, _IOLBF, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    shared->parent = getpid();
    find_notes();
    CHECK_EQ(set_handler(SIGUSR2, on_signal, 0) + set_handler(SIGWINCH, on_signal, SA_ONSTACK), 0);
    return gort_main(body, argc, argv);
}
