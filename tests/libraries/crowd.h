/*
 * A library that never heard of goroutines, used by hundreds of them at once: all complete, with
 * right results, and the number of threads stays small. For C and C++. CROWD in the environment is
 * another number than 500.
 * OWN_THREAD=1: each is a thread to libc.
 */
#ifndef CROWD_H
#define CROWD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/own_thread.h"
#include <dirent.h>
#include <gort.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(cond)                                                               \
    do {                                                                          \
        if (cond) break;                                                          \
        fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond); \
        _exit(1);                                                                 \
    } while (0)
#define CROWD_UNUSED __attribute__((unused))

static int crowd_size(void) {
    const char *n = getenv("CROWD");
    return n ? atoi(n) : 500;
}

/* So many beyond those that the library had before. A goroutine that is preempted keeps its thread,
 * so beside much else on the machine there are more; many more where each is a thread to libc, and
 * only that it does not have a kernel thread for itself is sure. */
static int crowd_threads(void) {
    const char *n = getenv("CROWD_THREADS");
    return n ? atoi(n) : own_thread() ? crowd_size() : 60;
}

static gort_chan *crowd_gate;
static gort_wg crowd_members;
static void (*crowd_fn)(int);
static int crowd_stop;

static int thread_count(void) {
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void crowd_one(void *arg) {
    gort_chan_recv(crowd_gate, NULL); /* closed: all at once */
    crowd_fn((int)(intptr_t)arg);
    gort_wg_done(&crowd_members);
}

/* A plain thread would look at any moment; a goroutine looks whenever one of the others waits. */
static void crowd_watch(void *arg) {
    int *most = (int *)arg;
    while (!__atomic_load_n(&crowd_stop, __ATOMIC_RELAXED)) {
        int n = thread_count();
        if (n > *most) *most = n;
        gort_sleep(2 * GORT_MS);
    }
}

/* fn(0) ... fn(n - 1), each on a goroutine. */
CROWD_UNUSED static void crowd(const char *what, void (*fn)(int)) {
    gort_wg watch = {0};
    int n = crowd_size(), before = thread_count(), most = before;
    crowd_fn = fn;
    crowd_gate = gort_chan_new(0, 0);
    __atomic_store_n(&crowd_stop, 0, __ATOMIC_RELAXED);
    CHECK(gort_wg_go(&watch, crowd_watch, &most) == 0);
    gort_wg_add(&crowd_members, n);
    for (intptr_t i = 0; i < n; i++) CHECK(go_as_asked(crowd_one, (void *)i) == 0);
    gort_chan_close(crowd_gate);
    gort_wg_wait(&crowd_members);
    __atomic_store_n(&crowd_stop, 1, __ATOMIC_RELAXED);
    gort_wg_wait(&watch);
    gort_chan_release(crowd_gate);
    printf("%s: %d goroutines, %d threads, %d before\n", what, n, most, before);
    fflush(stdout);
    CHECK(most - before < crowd_threads());
}

/* The same for a library that tells threads apart. Without a thread of their own to libc they are
 * twenty, each locked to a thread of the kernel's. */
static void (*crowd_locked_fn)(int);
static void crowd_locked_one(int i) {
    gort_lock_thread();
    crowd_locked_fn(i);
    gort_unlock_thread();
}
CROWD_UNUSED static void crowd_of_threads(const char *what, void (*fn)(int)) {
    if (!own_thread()) {
        setenv("CROWD", "20", 1);
        crowd_locked_fn = fn;
        fn = crowd_locked_one;
    }
    crowd(what, fn);
}

#endif
