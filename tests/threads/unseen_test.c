// not-with: valgrind (dlopen's own strncmp is an error to it where a library has a path to search)
/* libc releases what a thread waits for where nobody else sees it: in a wait for a condition that
 * is shared, or of a thread that libc has made for a timer, and at the end of such a thread's
 * once. */
#include "threads_test.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool inside, go; /* atomic; mutex */
static sem_t done;

static void is_inside(void) {
    __atomic_store_n(&inside, true, __ATOMIC_SEQ_CST);
    usleep(20000); /* so that the other one waits, as a rule */
}

static void waits(void) {
    pthread_mutex_lock(&mutex);
    is_inside();
    while (!go) pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    sem_post(&done);
}

static void signals(void) {
    wait_until(__atomic_load_n(&inside, __ATOMIC_SEQ_CST));
    pthread_mutex_lock(&mutex); /* until the condition's wait unlocks it */
    go = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    sem_wait(&done);
}

static void once_inside(void) {
    is_inside();
    go = true;
}
static void begins_once(void) {
    pthread_once(&once, once_inside);
    sem_post(&done);
}
static void needs_once(void) {
    wait_until(__atomic_load_n(&inside, __ATOMIC_SEQ_CST));
    pthread_once(&once, once_inside);
    CHECK(go);
    sem_wait(&done);
}

static void *run(void *fn) {
    ((void (*)(void))fn)();
    return NULL;
}
static void at_timer(union sigval fn) { run(fn.sival_ptr); }

static void by_thread(void (*fn)(void)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, (void *)fn) == 0);
    CHECK(pthread_detach(thread) == 0);
}
static void by_timer(void (*fn)(void)) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = at_timer};
    struct itimerspec at = {{0, 0}, {0, 1000}};
    event.sigev_value.sival_ptr = (void *)fn;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &at, NULL) == 0);
}
static void nothing(void) {}

static void shared_condition(void) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    CHECK(pthread_cond_init(&cond, &attr) == 0);
    by_thread(waits);
    signals();
}
static void condition_of_timer(void) {
    by_thread(nothing);
    by_timer(waits);
    signals();
}
static void once_of_timer(void) {
    by_thread(nothing);
    by_timer(begins_once);
    needs_once();
}

/* Each in a process of its own: what one of them is known to do holds for all that follows. */
static void alone(void (*fn)(void)) {
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(60);
        sem_init(&done, 0, 0);
        fn();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(void) {
    alone(shared_condition);
    alone(condition_of_timer);
    alone(once_of_timer);
    return 0;
}
