/* A library whose constructor makes threads: it runs before the hook's own. They answer over libc's
 * locks to the program's threads (late.c). */
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static int questions, answers;
static pthread_t servers[2];

static void *serve(void *arg) {
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (questions == 0) pthread_cond_wait(&asked, &mutex);
        questions--;
        answers++;
        pthread_cond_signal(&answered);
    }
    return NULL;
}
__attribute__((constructor)) static void begin(void) {
    for (int i = 0; i < 2; i++) pthread_create(&servers[i], NULL, serve, NULL);
}

void ask(void) {
    pthread_mutex_lock(&mutex);
    questions++;
    pthread_cond_signal(&asked);
    while (answers == 0) pthread_cond_wait(&answered, &mutex);
    answers--;
    pthread_mutex_unlock(&mutex);
}
