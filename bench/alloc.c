/*
 * gort_alloc against malloc, in one process, ns per object (made and freed): `make bench-alloc`.
 *
 *   pair        make one, free it
 *   live        64 at a time, sizes 48 to 111
 *   burst       1,024 at a time, 200 bytes: more than malloc's caches per thread hold
 *   everywhere  as burst, by 8 goroutines on all Ps
 *   across      made by one goroutine, freed by another, over a channel in parcels of 100
 *
 * The least of five runs counts, since others use the machine too.
 */
#include <gort.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Kind {
    const char *name;
    void *(*make)(size_t);
    void (*drop)(void *);
} Kind;
static const Kind kinds[2] = {{"gort_alloc", gort_alloc, gort_free}, {"malloc", malloc, free}};
static const Kind *kind;

enum { PAIRS = 2000000, BURST = 1024, PARCEL = 100, TEAM = 8 };

static int64_t pairs(void) {
    for (int i = 0; i < PAIRS; i++) {
        volatile char *p = kind->make(64);
        *p = 1;
        kind->drop((void *)p);
    }
    return PAIRS;
}

static int64_t live(void) {
    void *at[64];
    for (int i = 0; i < PAIRS / 64; i++) {
        for (size_t k = 0; k < 64; k++) *(volatile char *)(at[k] = kind->make(48 + k)) = 1;
        for (size_t k = 0; k < 64; k++) kind->drop(at[k]);
    }
    return PAIRS / 64 * 64;
}

static int64_t burst(void) {
    void *at[BURST];
    for (int i = 0; i < PAIRS / BURST; i++) {
        for (int k = 0; k < BURST; k++) *(volatile char *)(at[k] = kind->make(200)) = 1;
        for (int k = 0; k < BURST; k++) kind->drop(at[k]);
    }
    return PAIRS / BURST * BURST;
}

static void member(void *arg) { burst(); }
static int64_t everywhere(void) {
    gort_wg wg = {0};
    for (int i = 0; i < TEAM; i++) gort_wg_go(&wg, member, NULL);
    gort_wg_wait(&wg);
    return (int64_t)TEAM * (PAIRS / BURST * BURST);
}

typedef struct Parcel {
    void *at[PARCEL];
} Parcel;

static void maker(void *arg) {
    Parcel p;
    for (int i = 0; i < PAIRS / PARCEL; i++) {
        for (int k = 0; k < PARCEL; k++) *(volatile char *)(p.at[k] = kind->make(128)) = 1;
        gort_chan_send(arg, &p);
    }
    gort_chan_close(arg);
}

static int64_t across(void) {
    gort_chan *c = gort_chan_new(sizeof(Parcel), 8);
    Parcel p;
    gort_go(maker, c);
    while (gort_chan_recv(c, &p) == 0)
        for (int k = 0; k < PARCEL; k++) kind->drop(p.at[k]);
    gort_chan_release(c);
    return PAIRS;
}

static double best(int64_t (*run)(void)) {
    double least = 1e9;
    for (int i = 0; i < 5; i++) {
        int64_t start = gort_now(), n = run();
        double each = (double)(gort_now() - start) / (double)n;
        if (each < least) least = each;
    }
    return least;
}

static int body(int argc, char **argv) {
    static const struct {
        const char *name;
        int64_t (*run)(void);
    } runs[] = {{"pair", pairs},
                {"live", live},
                {"burst", burst},
                {"everywhere", everywhere},
                {"across", across}};
    printf("%-12s%12s%12s   ns per object, %d Ps\n", "", kinds[0].name, kinds[1].name,
           gort_maxprocs(0));
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        double ns[2];
        for (int k = 0; k < 2; k++) {
            kind = &kinds[k];
            ns[k] = best(runs[i].run);
        }
        printf("%-12s%12.1f%12.1f\n", runs[i].name, ns[0], ns[1]);
    }
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
