/* Threads that ask those of a library's constructor (early.c). */
#include <pthread.h>
#include <stdio.h>

void ask(void);

static void *asks(void *arg) {
    for (int i = 0; i < 100; i++) ask();
    return NULL;
}

int main(void) {
    enum { THREADS = 20 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, asks, NULL) != 0) return 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("answered\n");
    return 0;
}
