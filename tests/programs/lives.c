/* Lives of threads, N of them (a million), of all kinds: joined, detached, cancelled, ended by
 * pthread_exit, with keys, variables, names, locales, signals and stacks of three sizes. A tenth of
 * them first: then the process has what it needs, and the others may not add to it: memory, maps,
 * descriptors, kernel threads. Knows nothing of gort. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAKERS = 4, AT_ONCE = 16, KINDS = 8 };
#define MOST_BYTES ((long)2 << 20) /* what a million lives may add: two bytes each */

#define CHECK(x)                                                            \
    do {                                                                    \
        if (!(x)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static __thread char *text; /* of the life that runs: empty at its begin */
static __thread int lives_here;
static pthread_key_t key;
static long destroyed, handled, ended; /* atomic */
static sem_t free_places;              /* for detached ones */

static void count(long *at) { __atomic_add_fetch(at, 1, __ATOMIC_SEQ_CST); }
static void destroy(void *value) {
    free(value);
    count(&destroyed);
}
static void on_signal(int signo) { count(&handled); }
static void cleanup(void *arg) { count(&ended); }

static void *wait_for_cancel(void *arg) {
    pthread_cleanup_push(cleanup, NULL);
    for (;;) pause();
    pthread_cleanup_pop(0);
    return NULL;
}

static void *life(void *arg) {
    long kind = (long)arg % KINDS;
    char name[16], buffer[64];
    CHECK(text == NULL && lives_here++ == 0 && pthread_getspecific(key) == NULL && errno == 0);
    text = malloc(100 + (size_t)kind);
    CHECK(text && pthread_setspecific(key, text) == 0);
    snprintf(name, sizeof name, "life %ld", kind);
    CHECK(pthread_setname_np(pthread_self(), name) == 0);
    if (kind == 1) {
        locale_t l = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        uselocale(l);
        snprintf(buffer, sizeof buffer, "%.3f", 1.5);
        uselocale(LC_GLOBAL_LOCALE);
        freelocale(l);
    }
    if (kind == 2) pthread_kill(pthread_self(), SIGUSR1);
    if (kind == 3) sched_yield();
    if (kind == 4) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        pthread_kill(pthread_self(), SIGUSR2); /* ends with the thread, unseen */
    }
    if (kind == 7) sem_post(&free_places);
    count(&ended);
    if (kind == 5) pthread_exit(arg);
    return arg;
}

static const size_t sizes[3] = {64 << 10, 128 << 10, 1 << 20};

static void *maker(void *arg) {
    long lives = *(long *)arg;
    pthread_t made[AT_ONCE];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    for (long done = 0; done < lives; done += AT_ONCE) {
        for (long i = 0; i < AT_ONCE; i++) {
            bool detached = i % KINDS == 7;
            pthread_attr_setstacksize(&attr, sizes[(done / AT_ONCE + i) % 3]);
            pthread_attr_setdetachstate(&attr, detached ? PTHREAD_CREATE_DETACHED
                                                        : PTHREAD_CREATE_JOINABLE);
            if (detached)
                while (sem_wait(&free_places) != 0) CHECK(errno == EINTR);
            CHECK(pthread_create(&made[i], &attr, i % KINDS == 6 ? wait_for_cancel : life,
                                 (void *)i) == 0);
        }
        for (long i = 0; i < AT_ONCE; i++) {
            void *value;
            if (i % KINDS == 7) continue;
            if (i % KINDS == 6) CHECK(pthread_cancel(made[i]) == 0);
            CHECK(pthread_join(made[i], &value) == 0);
            CHECK(value == (i % KINDS == 6 ? PTHREAD_CANCELED : (void *)i));
        }
    }
    pthread_attr_destroy(&attr);
    return NULL;
}

static void run(long lives) {
    pthread_t makers[MAKERS];
    long each = lives / MAKERS / AT_ONCE * AT_ONCE, before = ended;
    for (int i = 0; i < MAKERS; i++) CHECK(pthread_create(&makers[i], NULL, maker, &each) == 0);
    for (int i = 0; i < MAKERS; i++) CHECK(pthread_join(makers[i], NULL) == 0);
    while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) < before + each * MAKERS) usleep(1000);
}

typedef struct Use {
    long resident, heap, maps, descriptors, threads;
} Use;
static long lines_or_entries(const char *path, const char *key) {
    char line[1024];
    long n = 0;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (key == NULL) n++;
        else if (strncmp(line, key, strlen(key)) == 0) n = atol(line + strlen(key));
    }
    if (f) fclose(f);
    return n;
}
static long descriptors(void) {
    long n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}
static Use used(const char *when) {
    malloc_trim(0);
    Use u = {lines_or_entries("/proc/self/status", "VmRSS:") << 10, (long)mallinfo2().uordblks,
             lines_or_entries("/proc/self/maps", NULL), descriptors(),
             lines_or_entries("/proc/self/status", "Threads:")};
    fprintf(stderr,
            "%s: resident %ld, in use of malloc's %ld, maps %ld, descriptors %ld, "
            "kernel threads %ld\n",
            when, u.resident, u.heap, u.maps, u.descriptors, u.threads);
    return u;
}

int main(int argc, char **argv) {
    long lives = argc > 1 ? atol(argv[1]) : 1000000;
    struct sigaction act = {.sa_handler = on_signal};
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0 && sigaction(SIGUSR2, &act, NULL) == 0);
    CHECK(pthread_key_create(&key, destroy) == 0);
    CHECK(sem_init(&free_places, 0, 2 * AT_ONCE) == 0);
    run(lives / 10);
    Use before = used("a tenth");
    run(lives);
    Use after = used("all");
    CHECK(handled * KINDS == ended);
    CHECK(after.resident - before.resident < MOST_BYTES);
    CHECK(after.heap - before.heap < MOST_BYTES / 4);
    CHECK(after.maps - before.maps < 300 && after.descriptors - before.descriptors < 10);
    CHECK(after.threads - before.threads < 60);
    printf("%ld lives, %ld values destroyed\n", ended, destroyed);
    return 0;
}
