/*
 * Does a program that starts one runtime after the other grow? Descriptors, threads and mapped
 * memory, as the kernel counts them.
 *
 * A goroutine that is stopped for good takes what it had made with it: a few hundred bytes, and
 * descriptors of its own. These are the program's, and the caller says which they are (mine). All
 * others are the library's, and none may stay.
 */
#ifndef GORT_GROWTH_H
#define GORT_GROWTH_H

#include "../lib/test.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define GROWTH_MEMORY 0 /* the sanitizers' own is most of it */
#else
#define GROWTH_MEMORY 1
#endif
#define STACKS_MOST ((uint64_t)4 << 30)
/* runtimes; bytes; bytes a runtime */
enum { GROWTH_WARM = 40, GROWTH_ROOM = 24 << 20, GROWTH_EACH = 96 << 10 };

typedef struct Growth {
    int rounds, descriptors, threads;
    long bytes;
} Growth;

/* One arena: each new thread would reserve 64 MB otherwise. Before the first thread. */
TEST_UNUSED static void growth_begin(void) { mallopt(M_ARENA_MAX, 1); }

static int entries(const char *path, bool (*mine)(int)) {
    int n = 0;
    DIR *d = opendir(path);
    CHECKF(d != NULL, "%s cannot be read", path);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || (mine && atoi(e->d_name) == dirfd(d))) continue;
        if (mine && mine(atoi(e->d_name))) continue;
        n++;
    }
    closedir(d);
    return n;
}

static long mapped(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECKF(f != NULL && fscanf(f, "%ld", &pages) == 1, "/proc/self/statm cannot be read");
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static void tell_descriptors(void) {
    char path[64], to[256];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, to, sizeof to - 1);
        if (n > 0) fprintf(stderr, "  %d %.*s\n", fd, (int)n, to);
    }
}

/* What is on its way out gets three seconds: a call that was under way, or the end of a trace. */
static bool settles(int *count, int limit, const char *path, bool (*mine)(int)) {
    int64_t until = gort_now() + 3 * GORT_SEC;
    while ((*count = entries(path, mine)) > limit && gort_now() < until) usleep(2000);
    return *count <= limit;
}

/* Between two runtimes, while nobody else opens or starts anything. `threads`: as many as there may
 * be. */
TEST_UNUSED static void growth_look(Growth *g, int threads, bool (*mine)(int)) {
    int n;
    if (g->rounds++ == 0) g->descriptors = entries("/proc/self/fd", mine);
    if (!settles(&n, g->descriptors, "/proc/self/fd", mine)) {
        tell_descriptors();
        FAILF("runtime %d leaves %d descriptors, the first left %d", g->rounds, n, g->descriptors);
    }
    CHECKF(settles(&n, threads, "/proc/self/task", NULL), "runtime %d leaves %d threads of %d",
           g->rounds, n, threads);
    gort_stats s;
    gort_stats_read(&s); /* address space for stacks comes by the gigabyte, and stays */
    CHECKF(s.stack_bytes_reserved <= STACKS_MOST, "runtime %d: %" PRIu64 " MB reserved for stacks",
           g->rounds, s.stack_bytes_reserved >> 20);
    long bytes = GROWTH_MEMORY ? mapped() - (long)s.stack_bytes_reserved : 0;
    if (g->rounds <= GROWTH_WARM) g->bytes = bytes;
    long limit = g->bytes + GROWTH_ROOM + (long)g->rounds * GROWTH_EACH;
    CHECKF(bytes <= limit, "%ld MB are mapped after runtime %d, %ld MB after the first %d",
           bytes >> 20, g->rounds, g->bytes >> 20, GROWTH_WARM);
}

#endif
