// Threads that ask for the first name in a module at the same time all get it: one reads the table,
// the others wait for it.
#include "../lib/test.h"
#include "unwind/symbols.h"

#include <pthread.h>
#include <string.h>

enum { THREADS = 8 };
static pthread_barrier_t together;

static void *ask(void *arg) {
    pthread_barrier_wait(&together);
    const char *name = symbol_of((uintptr_t)ask + 1).name;
    CHECKF(name != NULL && strcmp(name, "ask") == 0, "the name is %s", name ? name : "missing");
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, ask, NULL) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
