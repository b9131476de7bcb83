/* The page that the library (top.c) and gort-top (tools/gort-top.c), perhaps of different builds,
 * share: the fields have fixed sizes, and `layout` is the version of this file. */
#ifndef TOP_LAYOUT_H
#define TOP_LAYOUT_H

#include <stdint.h>

#define TOP_NAME "gort-top" /* /proc/PID/fd/N -> /memfd:gort-top */
#define TOP_LAYOUT 1u
#define TOP_PS 64
#define TOP_MS 64
#define TOP_TITLE 32

typedef struct TopP {
    uint32_t status; /* 0 idle, 1 running, 2 stopped, 3 dead */
    uint32_t queue, timers;
    int32_t m;        /* the thread that holds it; -1: none */
    uint64_t g, next; /* running goroutine, LIFO slot; 0: none */
    uint64_t switches;
    uint32_t ran_us; /* for how long g has run */
    uint32_t unused;
    char title[TOP_TITLE]; /* the running goroutine's name or function */
} TopP;

typedef struct TopM {
    uint32_t id;
    int32_t p; /* -1: none */
    uint64_t g;
    char state[16];
} TopM;

typedef struct TopFigures {
    int64_t now; /* of the monotonic clock, ns */
    uint64_t goroutines, goroutines_created, maxprocs, idle_procs, threads, idle_threads,
        spinning_threads, global_queue, local_queues, switches, steals, stolen, global_gets,
        overflows, handoffs, retakes, preempt_requests, preemptions, timers, netpoll_wakeups,
        stack_bytes_reserved, stack_bytes_cached, syscalls_blocking, threads_created, poll_waiters,
        in_syscall;
    uint32_t ps, ms; /* in the tables below */
    TopP p[TOP_PS];
    TopM m[TOP_MS];
} TopFigures;

typedef struct TopPage {
    uint32_t layout; /* TOP_LAYOUT */
    uint32_t pid;
    uint32_t running; /* atomic: gort_main runs */
    uint32_t seq;     /* atomic: odd while the figures change */
    int64_t watched;  /* atomic, by gort-top: it looks until then (monotonic, ns) */
    int64_t begun;    /* when gort_main started */
    TopFigures figures;
} TopPage;

#endif
