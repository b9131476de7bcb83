/*
 * A call that begins in the middle of a close: it has the number's next life, and its last file still. All that it moves goes to
 * one file.
 *
 * First a close that takes long, made to order: fclose has a megabyte to write to a socket that nobody empties. Then a searcher: a
 * number is closed in every way and given anew, seen by the hook or not, as fast as it goes, while goroutines write long messages to it and
 * readers look at what each file gets: a message, if at all, from its beginning. GAP_ROUNDS=n of these; tests/long/hook_numbers.sh
 * runs it beside the monkey, which holds single threads in the middle of a close.
 */
#include "hook.h"
#include <sys/mman.h>

#define LONG ((size_t)1 << 20)
#define NUMBER 700
#define PEER 800

static long raw(long r) { return r; }
#define RAW(name, ...) raw(syscall(SYS_##name, __VA_ARGS__))

/* A message begins with one B; a file whose first byte is another has got the rest of one. */
static char message[2 * LONG];
static void make_message(void) {
    memset(message, 'w', sizeof message);
    message[0] = 'B';
}

/* ---- a close that takes long -------------------------------------------------------------------- */

static FILE *file;
static int stranger, closed, over, held, go_on, begun;

/* In the middle of fclose. */
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
    if (pread(stranger, &first, 1, 0) == 1) CHECK_EQ(first, 'B'); /* the whole call went there: it began later */
    RAW(close, NUMBER), RAW(close, stranger), RAW(close, e[1]);
    CHECK_EQ(pthread_join(t, NULL), 0);
    free(lines), free(room);
}

/* ---- the searcher ------------------------------------------------------------------------------- */

static uint64_t rng;
static uint32_t pick(uint32_t n) { return (uint32_t)(test_random(&rng) >> 33) % n; }
static int stop;
static gort_wg writers;

/* One at a time is inside: what a file gets is then one message after another. */
static gort_mutex turn;
static void writes_on(void *arg) {
    for (int i = 0; !get(&stop); i++) {
        gort_mutex_lock(&turn);
        if (i % 3 == 0) gort_write_full(NUMBER, message, 65536);
        else if (i % 3 == 1) write(NUMBER, message, 65536);
        else send(NUMBER, message, 65536, 0);
        gort_mutex_unlock(&turn);
        if (i % 8 == 0) gort_yield();
    }
    gort_wg_done(&writers);
}

/* Its writer's end, with little room; the other end. */
static int new_file(int *end) {
    int e[2], small = 4096;
    CHECK_EQ(RAW(socketpair, AF_UNIX, SOCK_STREAM, 0, e), 0);
    CHECK_EQ(setsockopt(e[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    *end = (int)RAW(fcntl, e[0], F_DUPFD_CLOEXEC, PEER);
    int peer = (int)RAW(fcntl, e[1], F_DUPFD_CLOEXEC, PEER);
    RAW(close, e[0]), RAW(close, e[1]);
    return peer;
}

/* The number becomes that file. */
static void give(int end) {
    switch (pick(5)) {
    case 0: CHECK_EQ(dup2(end, NUMBER), NUMBER); return;
    case 1: CHECK_EQ(gort_close(NUMBER), 0); break;
    case 2: CHECK_EQ(close_range(NUMBER, NUMBER, 0), 0); break;
    default: CHECK_EQ(close(NUMBER), 0);
    }
    if (pick(2)) CHECK_EQ(RAW(fcntl, end, F_DUPFD, NUMBER), NUMBER);
    else CHECK_EQ(fcntl(end, F_DUPFD, NUMBER), NUMBER);
}

/* Everything that is in it. *begun: its first byte has been seen. */
static void look(int peer, bool *begun, int round) {
    char first = 0;
    ssize_t r = *begun ? 0 : recv(peer, &first, 1, MSG_DONTWAIT);
    if (r == 1 && first != 'B') FAILF("round %d: the rest of a message", round);
    *begun |= r == 1;
    while (*begun && drain(peer)) {}
}

static void *gives(void *arg) {
    int rounds = *(int *)arg, end, peer = -1;
    bool begun = false;
    for (int i = 0; i < rounds; i++) {
        int last = peer;
        peer = new_file(&end);
        if (i == 0) CHECK_EQ(RAW(fcntl, end, F_DUPFD, NUMBER), NUMBER);
        else give(end);
        RAW(close, end);
        if (last >= 0) look(last, &begun, i), RAW(close, last);
        begun = false;
        for (uint32_t k = pick(64); k > 0; k--) sched_yield();
        if (pick(4) == 0) look(peer, &begun, i);
    }
    RAW(close, peer); /* a writer gets EPIPE */
    return NULL;
}
static long gives_blocking(void *arg) { return (long)gives(arg); }

static void searched(int rounds) {
    set(&stop, 0);
    for (int i = 0; i < 3; i++) {
        gort_wg_add(&writers, 1);
        CHECK_EQ(gort_go(writes_on, NULL), 0);
    }
    pthread_t t;
    if (pick(2)) {
        CHECK_EQ(pthread_create(&t, NULL, gives, &rounds), 0);
        CHECK_EQ(pthread_join(t, NULL), 0);
    } else {
        gort_blocking(gives_blocking, &rounds);
    }
    set(&stop, 1);
    close(NUMBER);
    gort_wg_wait(&writers);
}

static int run(int argc, char **argv) {
    const char *seed = getenv("GAP_SEED"), *rounds = getenv("GAP_ROUNDS");
    rng = seed ? strtoull(seed, NULL, 0) : 1;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, hold);
    make_message();
    in_a_close();
    for (int i = 0; i < 4; i++) searched(rounds ? atoi(rounds) : 1000);
    return 0;
}

HOOK_MAIN(run)
