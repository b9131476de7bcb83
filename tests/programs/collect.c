/* Threads of a program with the Boehm collector, which stops them all by a signal, wherever they
 * are, and looks at their stacks: each makes lists that only its stack holds, beside garbage, waits
 * now and then, and finds its lists whole. Knows nothing of gort. */
#define GC_THREADS
#include <gc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 16, ROUNDS = 20, LENGTH = 500 };
typedef struct Node {
    struct Node *next;
    long value, room[6];
} Node;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long rounds;

static long sum_of(const Node *n) {
    long sum = 0;
    for (; n; n = n->next) sum += n->value;
    return sum;
}

static void *collects(void *arg) {
    for (int round = 0; round < ROUNDS; round++) {
        Node *list = NULL;
        for (long i = 0; i < LENGTH; i++) {
            Node *n = GC_MALLOC(sizeof *n);
            if (n == NULL) abort();
            n->next = list;
            n->value = i;
            list = n;
            for (int g = 0; g < 4; g++) *(long *)GC_MALLOC(sizeof *n) = -1;
            if (i % 100 == 0) usleep(100);
        }
        pthread_mutex_lock(&mutex);
        rounds++;
        sched_yield();
        pthread_mutex_unlock(&mutex);
        if (round % 10 == 0) GC_gcollect();
        if (sum_of(list) != (long)LENGTH * (LENGTH - 1) / 2) abort();
    }
    return arg;
}

int main(void) {
    pthread_t threads[THREADS];
    GC_INIT();
    GC_allow_register_threads();
    for (int life = 0; life < 2; life++) {
        for (long i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, collects, &threads[i]) != 0) return 1;
        for (long i = 0; i < THREADS; i++) {
            void *value;
            if (pthread_join(threads[i], &value) != 0 || value != &threads[i]) return 2;
        }
    }
    printf("%ld rounds, %s\n", rounds, GC_get_gc_no() > 3 ? "collected" : "not collected");
    return 0;
}
