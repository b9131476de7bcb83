/*
 * read(2) on a terminal does what termios(3) says, whatever poll(2) says (src/hook/terminal.c): in
 * lines, with every kind of VMIN and VTIME, by a number of the program's own, one that was opened
 * by name, a copy; where enough is there, where the rest comes later, and where nothing comes. And
 * in the background of the terminal: SIGTTIN, EIO. The master of the pair is none of that.
 */
#include "hook.h"
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

enum { IN_LINES = -1 };
typedef struct Scene {
    int min, time; /* VMIN, or IN_LINES; VTIME */
    size_t n;      /* asked for */
    const char *there, *later;
    long r;
} Scene;
static const Scene scenes[] = {
    {0, 0, 8, "", "", 0},
    {0, 0, 8, "abc", "", 3},
    {0, 0, 2, "abc", "", 2},
    {0, 1, 8, "", "", 0},
    {0, 1, 8, "abc", "", 3},
    {0, 200, 8, "", "xy", 2},
    {1, 0, 8, "abc", "", 3},
    {1, 0, 8, "", "xy", 2},
    {5, 0, 3, "abcd", "", 3},
    {5, 0, 3, "a", "xy", 3},
    {5, 0, 8, "abc", "xy", 5},
    {5, 0, 8, "abcdefghi", "", 8},
    {3, 1, 8, "a", "", 1},
    {3, 1, 8, "abcd", "", 4},
    {4, 200, 8, "a", "xyz", 4},
    {4, 200, 2, "a", "xyz", 2},
    {IN_LINES, 0, 8, "ab\n", "", 3},
    {IN_LINES, 0, 2, "ab\n", "", 2},
    {IN_LINES, 0, 8, "ab", "c\n", 4},
    {IN_LINES, 0, 8, "\4", "", 0},
};

static int master, slave, begun;
static const Scene *scene;

static void pair_open(bool by_copy) {
    CHECK_GE(master = posix_openpt(O_RDWR | O_NOCTTY), 0);
    CHECK(grantpt(master) == 0 && unlockpt(master) == 0);
    CHECK_GE(slave = open(ptsname(master), O_RDWR | O_NOCTTY), 0);
    int copy = dup(slave);
    CHECK_GE(copy, 0);
    close(by_copy ? slave : copy);
    if (by_copy) slave = copy;
}
static void pair_close(void) {
    close(master);
    close(slave);
}

static void settle(int min, int time) {
    struct termios t;
    CHECK_EQ(tcgetattr(slave, &t), 0);
    cfmakeraw(&t);
    if (min == IN_LINES) t.c_lflag |= ICANON;
    else t.c_cc[VMIN] = (cc_t)min, t.c_cc[VTIME] = (cc_t)time;
    CHECK_EQ(tcsetattr(slave, TCSANOW, &t), 0);
}

/* All of the text is in the terminal, but for an end of file, which does not count. */
static bool arrived(const char *text) {
    int n = 0;
    if (scene->min == IN_LINES) return poll(&(struct pollfd){slave, POLLIN, 0}, 1, 0) >= 0;
    CHECK_EQ(ioctl(slave, FIONREAD, &n), 0);
    return n >= (int)strlen(text);
}
static void types(const char *text) {
    CHECK_EQ(write(master, text, strlen(text)), (ssize_t)strlen(text));
}

static long reads(char *buf, bool vector) {
    struct iovec two[2] = {{buf, 1}, {buf + 1, scene->n - 1}};
    return vector ? readv(slave, two, 2) : read(slave, buf, scene->n);
}
static void reader(void *vector) {
    char buf[16] = "", all[16] = "";
    set(&begun, 1);
    int64_t from = gort_now();
    long r = reads(buf, vector != NULL);
    CHECKF(r == scene->r, "VMIN %d VTIME %d, %zu of '%s' '%s': %ld, errno %d", scene->min,
           scene->time, scene->n, scene->there, scene->later, r, errno);
    snprintf(all, sizeof all, "%s%s", scene->there, scene->later);
    CHECK_EQ(memcmp(buf, all, (size_t)r), 0);
    if (*scene->later == 0 && scene->time == 1 && r < 2)
        CHECK_GE(gort_now() - from, scene->time * GORT_SEC / 10 - GORT_MS);
    set(&begun, 2);
}

static void play(const Scene *s, bool vector) {
    scene = s;
    settle(s->min, s->time);
    tcflush(slave, TCIFLUSH);
    set(&begun, 0);
    if (*s->there) types(s->there);
    wait_until(arrived(s->there));
    CHECK_EQ(gort_go(reader, vector ? &begun : NULL), 0);
    if (*s->later) {
        wait_until(get(&begun) == 1);
        gort_sleep(5 * GORT_MS); /* wrong would be to return before the rest */
        CHECK_EQ(get(&begun), 1);
        types(s->later);
    }
    wait_until(get(&begun) == 2);
}

static void all_scenes(void) {
    for (int i = 0; i < 4; i++) {
        pair_open(i & 1);
        for (size_t k = 0; k < sizeof scenes / sizeof *scenes; k++) play(&scenes[k], i & 2);
        pair_close();
    }
}

/* After so many reads that find something a call may be made as it is; a terminal's never. */
static void stays_cold(void) {
    static const Scene quick = {1, 0, 8, "a", "", 1}, slow = {4, 0, 8, "a", "xyz", 4};
    pair_open(false);
    for (int i = 0; i < 200; i++) play(&quick, false);
    play(&slow, false);
    pair_close();
}

/* With O_NONBLOCK nothing waits, by whatever settings. */
static void nonblocking(void) {
    char c;
    pair_open(false);
    for (int k = 0; k < 4; k++) {
        settle(k & 1, k & 2);
        CHECK_EQ(fcntl(slave, F_SETFL, O_RDWR | O_NONBLOCK), 0);
        if (k == 0) CHECK_EQ(read(slave, &c, 1), 0);
        else CHECK_FAILS(read(slave, &c, 1), EAGAIN);
        CHECK_EQ(fcntl(slave, F_SETFL, O_RDWR), 0);
    }
    pair_close();
}

static void master_reader(void *arg) {
    char c = 0;
    CHECK_EQ(read(master, &c, 1), 1);
    CHECK_EQ(c, 'm');
    set(&begun, 2);
}
static void the_master(void) {
    pair_open(false);
    settle(0, 0);
    set(&begun, 0);
    CHECK_EQ(gort_go(master_reader, NULL), 0);
    wait_for_waiting("IO wait", 1);
    CHECK_EQ(write(slave, "m", 1), 1);
    wait_until(get(&begun) == 2);
    pair_close();
}

static void closed_reader(void *arg) {
    char c;
    CHECK_FAILS(read(slave, &c, 1), EBADF);
    set(&begun, 2);
}
static void closes(void) {
    pair_open(false);
    settle(0, 250);
    set(&begun, 0);
    CHECK_EQ(gort_go(closed_reader, NULL), 0);
    wait_for_waiting("IO wait", 1);
    CHECK_EQ(close(slave), 0);
    wait_until(get(&begun) == 2);
    close(master);
}

/* ---- in the background ---------------------------------------------------------------------- */

static int stops;
static void stopped(int sig) { add(&stops, 1); }

static int background(int argc, char **argv) {
    char c;
    struct sigaction sa = {.sa_handler = SIG_IGN};
    sigaction(SIGTTIN, &sa, NULL);
    CHECK_FAILS(read(slave, &c, 1), EIO);
    sa.sa_handler = stopped;
    sigaction(SIGTTIN, &sa, NULL);
    CHECK_FAILS(read(slave, &c, 1), EINTR); /* again in the kernel where another thread took it */
    CHECK_GE(get(&stops), 1);
    types("text\n");
    wait_until(poll(&(struct pollfd){slave, POLLIN, 0}, 1, 0) == 1);
    CHECK_FAILS(read(slave, &c, 1), EINTR);
    set(&stops, 0);
    struct termios t;
    sigset_t blocked;
    CHECK_EQ(tcgetattr(slave, &t), 0);
    t.c_lflag |= TOSTOP;
    sigemptyset(&blocked); /* or tcsetattr would stop the process */
    sigaddset(&blocked, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    CHECK_EQ(tcsetattr(slave, TCSANOW, &t), 0);
    sigaction(SIGTTOU, &sa, NULL);
    pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
    for (int i = 0; i < 3; i++) CHECK_FAILS(write(slave, "x", 1), EINTR);
    CHECK_GE(get(&stops), 3);
    return 0;
}

/* A child leads a session with the terminal; a child of that is in the background. */
static void in_background(int argc, char **argv) {
    int status = 0, go[2];
    CHECK_EQ(pipe(go), 0);
    pair_open(false);
    pid_t leader = fork();
    if (leader == 0) {
        char c;
        CHECK(setsid() > 0 && ioctl(slave, TIOCSCTTY, 0) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            CHECK(setpgid(0, 0) == 0 && read(go[0], &c, 1) == 1);
            _exit(gort_main(background, argc, argv));
        }
        CHECK_EQ(write(go[1], "x", 1), 1);
        CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    }
    CHECK_EQ(waitpid(leader, &status, 0), leader);
    CHECK_EQ(status, 0);
    pair_close();
    close(go[0]);
    close(go[1]);
}

static int run(int argc, char **argv) {
    all_scenes();
    stays_cold();
    nonblocking();
    the_master();
    closes();
    return 0;
}

int main(int argc, char **argv) {
    check_hooked();
    in_background(argc, argv);
    return gort_main(run, argc, argv);
}
