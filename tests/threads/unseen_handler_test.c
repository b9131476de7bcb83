/* A handler waits over a connect that is made as it is, and blocks in the kernel. Behind it,
 * perhaps with another kernel thread, a cancel still ends the call. */
#include "threads_test.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { ROUNDS = 30, STOPS = 3, OTHERS = 3 };
static struct sockaddr_un full = {.sun_family = AF_UNIX};
static sem_t goes;
static int begun, inside, over; /* atomic */

static void on_signal(int signo) {
    __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    while (sem_wait(&goes) != 0) CHECK(errno == EINTR);
}
static int connects(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    return connect(fd, (void *)&full, sizeof full);
}
static void *waits(void *arg) {
    __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
    connects();
    return NULL;
}
static void *moves(void *arg) { /* others run on the kernel threads that wait */
    wait_until(__atomic_load_n(&over, __ATOMIC_SEQ_CST));
    return NULL;
}

int main(void) {
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    pthread_t others[OTHERS];
    snprintf(full.sun_path + 1, sizeof full.sun_path - 1, "gort-%d", (int)getpid());
    CHECK(bind(listener, (void *)&full, sizeof full) == 0 && listen(listener, 0) == 0);
    CHECK(connects() == 0); /* now it is full */
    sem_init(&goes, 0, 0);
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
    for (int i = 0; i < OTHERS; i++) CHECK(pthread_create(&others[i], NULL, moves, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        void *value;
        begun = inside = 0;
        CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
        wait_until(__atomic_load_n(&begun, __ATOMIC_SEQ_CST));
        if (round % 2) usleep(500); /* it is in the call, as a rule */
        for (int i = 1; i <= STOPS; i++) {
            CHECK(pthread_kill(thread, SIGUSR1) == 0);
            wait_until(__atomic_load_n(&inside, __ATOMIC_SEQ_CST) == i);
            usleep(300);
            sem_post(&goes);
        }
        usleep(100 * (unsigned)round);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED);
    }
    __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < OTHERS; i++) CHECK(pthread_join(others[i], NULL) == 0);
    return 0;
}
