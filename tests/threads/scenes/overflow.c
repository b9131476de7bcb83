/* A stack overflow, by the argument: of main, or of a thread: without an alternate stack, with one,
 * with a large guard.
 * tests/script/threads_overflow.sh. */
#include "../threads_test.h"

#include <signal.h>

static bool dives;

static long deeper(long n) {
    volatile char room[500];
    room[0] = (char)n;
    return deeper(n + 1) + room[0];
}

static void *dive(void *arg) {
    static char room[65536];
    stack_t own = {.ss_sp = room, .ss_size = sizeof room};
    if (arg) CHECK(sigaltstack(&own, NULL) == 0);
    return dives ? (void *)deeper(0) : NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    pthread_attr_t attr;
    dives = argc > 1 && strcmp(argv[1], "main") != 0;
    bool apart = argc > 1 && strcmp(argv[1], "apart") == 0;
    CHECK(pthread_attr_init(&attr) == 0);
    if (argc > 1 && strcmp(argv[1], "guarded") == 0)
        CHECK(pthread_attr_setguardsize(&attr, 1 << 20) == 0);
    CHECK(pthread_create(&thread, &attr, dive, apart ? &dives : NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return (int)deeper(0);
}
