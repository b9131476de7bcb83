/*
 * A fixed number of workers share a queue of jobs; results come back on a second channel, in any
 * order, and are put into their places by number.
 */
#include <gort.h>
#include <stdio.h>

typedef struct {
    int number;
    unsigned long result;
} Job;
GORT_CHAN_TYPE(jobs, Job)

enum { WORKERS = 8, JOBS = 20 };
static jobs *todo, *done;
static gort_wg workers;

static unsigned long collatz_steps(unsigned long n) {
    unsigned long steps = 0;
    for (; n != 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

static void worker(void *arg) {
    (void)arg;
    for (Job j; jobs_recv(todo, &j) == 0;) {
        unsigned long best = 0;
        for (unsigned long n = 1; n <= (unsigned long)j.number * 10000; n++)
            if (collatz_steps(n) > best) best = collatz_steps(n);
        j.result = best;
        jobs_send(done, j);
    }
}

static void close_when_done(void *arg) {
    (void)arg;
    gort_wg_wait(&workers);
    jobs_close(done);
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    unsigned long results[JOBS + 1] = {0};
    todo = jobs_new(JOBS);
    done = jobs_new(0);
    if (todo == NULL || done == NULL) return 1;
    for (int i = 0; i < WORKERS; i++)
        if (gort_wg_go(&workers, worker, NULL) < 0) return 1;
    if (gort_go(close_when_done, NULL) < 0) return 1;
    for (int i = 1; i <= JOBS; i++) jobs_send(todo, (Job){i, 0});
    jobs_close(todo); /* the workers drain it and end */
    for (Job j; jobs_recv(done, &j) == 0;) results[j.number] = j.result;
    for (int i = 5; i <= JOBS; i += 5)
        printf("longest Collatz chain up to %d: %lu steps\n", i * 10000, results[i]);
    jobs_release(todo);
    jobs_release(done);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
