/*
 * A planted bug: a lost wake-up. The consumer looks whether there is work, and then waits for the
 * signal; but it looks outside the mutex it waits with. A signal that comes in between meets
 * nobody. -DRIGHT: it looks under the mutex.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int work;

static void *producer(void *arg) {
    pthread_mutex_lock(&mutex);
    work++;
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&mutex);
    return arg;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, producer, NULL) != 0) return 2;
#ifdef RIGHT
    pthread_mutex_lock(&mutex);
    while (work == 0) pthread_cond_wait(&ready, &mutex);
    pthread_mutex_unlock(&mutex);
#else
    if (work == 0) { /* wrong: must be looked at, again and again, under the mutex */
        pthread_mutex_lock(&mutex);
        pthread_cond_wait(&ready, &mutex);
        pthread_mutex_unlock(&mutex);
    }
#endif
    pthread_join(thread, NULL);
    printf("%d piece of work\n", work);
    return 0;
}
