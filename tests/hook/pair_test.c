/*
 * Pipes and eventfds that the hook knows from both ends (src/hook/fdhints.h): a read or write that
 * finds something is the plain call, one that does not waits as a goroutine. Where bytes come or go
 * behind the hook's back (a child, a plain thread, a copy of the number) everybody else goes on,
 * and what arrives is right.
 */
#include "hook.h"
#include <sys/eventfd.h>

enum { PIPES = 100 };

static int ends[PIPES][2], got;

static void reader(void *arg) {
    int value = -1, i = (int)(intptr_t)arg;
    CHECK_EQ(read(ends[i][0], &value, sizeof value), sizeof value);
    CHECK_EQ(value, i);
    add(&got, 1);
}

static void start_reader(intptr_t i) { CHECK_EQ(gort_go(reader, (void *)i), 0); }

static void feed(int i) { CHECK_EQ(write(ends[i][1], &i, sizeof i), sizeof i); }

static void use(int i, int times) {
    for (int k = 0, value; k < times; k++) {
        CHECK_EQ(write(ends[i][1], &k, sizeof k), sizeof k);
        if (k % 3 == 0) continue; /* there is more than one in it, now and then */
        for (int back = k % 3; back >= 0 && k % 3 == 2; back--) {
            CHECK_EQ(read(ends[i][0], &value, sizeof value), sizeof value);
            CHECK_EQ(value, k - back);
        }
    }
    if (times % 3 == 1) {
        int value;
        CHECK_EQ(read(ends[i][0], &value, sizeof value), sizeof value);
    }
}

static void shut(int i) {
    CHECK_EQ(close(ends[i][0]), 0);
    CHECK_EQ(close(ends[i][1]), 0);
}

/* Much used, then silent: nobody's thread sleeps. */
static void silent(void) {
    set(&got, 0);
    for (int i = 0; i < PIPES; i++) {
        CHECK_EQ(pipe(ends[i]), 0);
        use(i, 300);
    }
    for (int i = 0; i < PIPES; i++) start_reader(i);
    /* a thread may have been held up for another reason */
    wait_for_waiting("IO wait", PIPES - 2 * test_procs() - 4);
    CHECK_LT(threads(), 2 * test_procs() + 14);
    for (int i = 0; i < PIPES; i++) feed(i);
    wait_until(get(&got) == PIPES);
    for (int i = 0; i < PIPES; i++) shut(i);
}

/* Everybody else goes on. */
static void others_go_on(void) {
    for (int i = 0; i < 100; i++) gort_yield();
}

/* Several readers of one: each message wakes one, and none of them relies on another's. */
static void several(void) {
    set(&got, 0);
    CHECK_EQ(pipe(ends[0]), 0);
    for (int i = 0; i < 10; i++) feed(0);
    for (int i = 0; i < 20; i++) start_reader(0);
    wait_until(get(&got) == 10);
    others_go_on();
    CHECK_EQ(get(&got), 10);
    for (int i = 0; i < 10; i++) feed(0);
    wait_until(get(&got) == 20);
    shut(0);
}

static char big[1 << 18], back[1 << 18];

static void big_writer(void *arg) {
    size_t piece = (size_t)(intptr_t)arg;
    for (size_t at = 0; at < sizeof big; at += piece) {
        size_t n = sizeof big - at < piece ? sizeof big - at : piece;
        CHECK_EQ(write(ends[0][1], big + at, n), (ssize_t)n);
    }
    CHECK_EQ(close(ends[0][1]), 0);
    add(&got, 1);
}

/* More than there is room for: the writer waits. Pieces of every size, around a page too. */
static void full(void) {
    static const int pieces[] = {1000, 1333, 4095, 4096, 4097, 70000, sizeof big};
    for (size_t i = 0; i < sizeof big; i++) big[i] = (char)(i * 7 + i / 4096);
    for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
        set(&got, 0);
        CHECK_EQ(pipe(ends[0]), 0);
        CHECK_EQ(gort_go(big_writer, (void *)(intptr_t)pieces[k]), 0);
        if (k % 2) others_go_on(); /* the pipe is full */
        for (size_t n = 0; n < sizeof back;) {
            size_t most = k % 3 ? sizeof back - n : 777;
            ssize_t r = read(ends[0][0], back + n, most < sizeof back - n ? most : sizeof back - n);
            CHECK(r > 0);
            n += (size_t)r;
        }
        CHECK(memcmp(big, back, sizeof big) == 0);
        CHECK_EQ(read(ends[0][0], back, 1), 0);
        wait_until(get(&got) == 1);
        CHECK_EQ(close(ends[0][0]), 0);
    }
}

static void small_writer(void *arg) {
    CHECK_EQ(write(ends[0][1], big, 90), 90);
    add(&got, 1);
}

/* A pipe of one page, half read: there is no room for what would fit by number. */
static void small_pipe(void) {
    CHECK_EQ(pipe(ends[0]), 0);
    if (fcntl(ends[0][1], F_SETPIPE_SZ, 4096) == 4096) {
        CHECK_EQ(write(ends[0][1], big, 4096), 4096);
        CHECK_EQ(read(ends[0][0], back, 4000), 4000);
        set(&got, 0);
        CHECK_EQ(gort_go(small_writer, NULL), 0);
        wait_for_waiting("IO wait", 1);
        CHECK_EQ(get(&got), 0);
        CHECK_EQ(read(ends[0][0], back, 96), 96);
        wait_until(get(&got) == 1);
    }
    shut(0);
}

static int copies[2];

/* Behind the hook's back what was written is read: the reader may take a thread, and waits for what
 * comes. */
static void taken_by_copy(void) {
    int value;
    CHECK_EQ(pipe(ends[0]), 0);
    feed(0);
    CHECK_GE(copies[0] = dup(ends[0][0]), 0);
    CHECK_EQ(read(copies[0], &value, sizeof value), sizeof value);
    CHECK_EQ(close(copies[0]), 0);
}

static void *take(void *arg) {
    int value;
    CHECK_EQ(read(ends[0][0], &value, sizeof value), sizeof value);
    return NULL;
}

static void taken_by_thread(void) {
    pthread_t t;
    CHECK_EQ(pipe(ends[0]), 0);
    feed(0);
    CHECK_EQ(pthread_create(&t, NULL, take, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

static void taken_by_child(void) {
    int status;
    CHECK_EQ(pipe(ends[0]), 0);
    feed(0);
    pid_t child = fork();
    if (child == 0) {
        take(NULL);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void behind_its_back(void (*taken)(void)) {
    for (int k = 0; k < 2; k++) {
        set(&got, 0);
        taken();
        start_reader(0);
        others_go_on();
        CHECK_EQ(get(&got), 0);
        feed(0);
        wait_until(get(&got) == 1);
        shut(0);
    }
}

/* Numbers come back as others: the ends of one pipe are not those of the next. */
static void numbers(void) {
    char c;
    int was[2];
    CHECK_EQ(pipe(ends[0]), 0);
    memcpy(was, ends[0], sizeof was);
    CHECK_EQ(write(ends[0][1], "abc", 3), 3);
    CHECK_EQ(close(ends[0][1]), 0);
    CHECK_EQ(pipe(ends[1]), 0); /* its reader has the number of the writer */
    CHECK_EQ(read(ends[0][0], back, 3), 3);
    CHECK_EQ(read(ends[0][0], back, 1), 0);
    CHECK_EQ(close(ends[0][0]), 0);
    set(&got, 0);
    start_reader(1);
    wait_for_waiting("IO wait", 1);
    feed(1);
    wait_until(get(&got) == 1);
    CHECK_EQ(close(ends[1][0]), 0);
    CHECK_FAILS(write(ends[1][1], &c, 1), EPIPE);
    CHECK_EQ(close(ends[1][1]), 0);
}

static int counter;

static void counter_reader(void *arg) {
    uint64_t n = 0;
    CHECK_EQ(read(counter, &n, sizeof n), 8);
    CHECK_EQ(n, (uint64_t)(intptr_t)arg);
    add(&got, 1);
}

static void count(uint64_t n) { CHECK_EQ(write(counter, &n, sizeof n), 8); }

static void expect(uint64_t n) {
    uint64_t value = 0;
    CHECK_EQ(read(counter, &value, sizeof value), 8);
    CHECK_EQ(value, n);
}

/* Two that were written are read as one; of a semaphore as two. What is read waits afterwards,
 * without a thread. */
static void counters(int flags) {
    set(&got, 0);
    CHECK_GE(counter = eventfd(flags & EFD_SEMAPHORE ? 1 : 3, flags), 0);
    expect(flags & EFD_SEMAPHORE ? 1 : 3);
    count(1);
    count(1);
    expect(flags & EFD_SEMAPHORE ? 1 : 2);
    if (flags & EFD_SEMAPHORE) expect(1);
    CHECK_EQ(gort_go(counter_reader, (void *)(intptr_t)(flags & EFD_SEMAPHORE ? 1 : 5)), 0);
    wait_for_waiting("IO wait", 1);
    count(flags & EFD_SEMAPHORE ? 1 : 5);
    wait_until(get(&got) == 1);
    int copy = dup(counter), first = counter;
    count(1);
    counter = copy;
    expect(1);
    counter = first;
    CHECK_EQ(gort_go(counter_reader, (void *)1), 0);
    wait_for_waiting("IO wait", 1);
    counter = copy;
    count(1);
    wait_until(get(&got) == 2);
    CHECK_EQ(close(copy) | close(first), 0);
}

static int run(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    silent();
    several();
    full();
    small_pipe();
    behind_its_back(taken_by_copy);
    behind_its_back(taken_by_thread);
    behind_its_back(taken_by_child);
    numbers();
    counters(0);
    counters(EFD_SEMAPHORE);
    return 0;
}

HOOK_MAIN(run)
