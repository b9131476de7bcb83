/* The first thread that a program cancels, while others change the process's rights, for which libc
 * asks every thread by a signal: in programs of its own, one behind the other. Not natively: there
 * a thread that ends meanwhile hangs at times (glibc 2.36). */
#include "threads_test.h"

#include <sys/wait.h>

enum { PROGRAMS = 20, CHANGERS = 3 };
static int over; /* atomic */

static void *changes(void *arg) {
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) CHECK(setegid(getegid()) == 0);
    return NULL;
}
static void *sleeps(void *arg) {
    for (;;) sleep(1000);
    return NULL;
}

static void cancels(void) {
    pthread_t changers[CHANGERS], thread;
    void *value;
    for (int i = 0; i < CHANGERS; i++)
        CHECK(pthread_create(&changers[i], NULL, changes, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, sleeps, NULL) == 0);
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED);
    __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < CHANGERS; i++) CHECK(pthread_join(changers[i], NULL) == 0);
}

int main(int argc, char **argv) {
    int status;
    if (!as_goroutines()) return 0;
    if (argc > 1) {
        cancels();
        return 0;
    }
    for (int i = 0; i < PROGRAMS; i++) {
        pid_t pid = fork();
        if (pid == 0) execl(argv[0], argv[0], "one", NULL);
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    }
    return 0;
}
