#define _GNU_SOURCE 1
/* A runtime ends while a name is looked up for a plain thread's dial. The dial gets the answer,
 * long before its deadline. */
#include "../lib/test.h"

#include <netdb.h>
#include <pthread.h>
#include <sched.h>

static int inside, answered;

/* The resolver, instead of libc's. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **res) {
    set(&inside, 1);
    while (!get(&answered)) sched_yield(); /* maybe inside gort_blocking */
    return EAI_NONAME;
}

static void *dials(void *arg) {
    CHECK_EQ(gort_dial_until("name.invalid:1", gort_now() + 3600 * GORT_SEC), -ENOENT);
    return NULL;
}

static pthread_t thread;
static int run(int argc, char **argv) {
    CHECK_EQ(pthread_create(&thread, NULL, dials, NULL), 0);
    wait_until(get(&inside));
    return 0;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 20; i++) {
        set(&inside, 0);
        set(&answered, 0);
        CHECK_EQ(gort_main(run, argc, argv), 0);
        set(&answered, 1);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    return 0;
}
