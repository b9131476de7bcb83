/* What the files of the program `bench` share. */
#ifndef WORKLOADS_H
#define WORKLOADS_H

#include <gort.h>
#include <stdint.h>

extern int64_t arg_n;          /* N of the command line; 0: none */
int64_t count(int64_t preset); /* N, or the default count */
_Noreturn void wrong(const char *what, int64_t value);
void go(gort_fn *fn, void *arg);  /* gort_go, or the end */
gort_chan *ints(size_t capacity); /* a channel of int64_t */

void spawn_in_batches(const char *name, int64_t total, int64_t batch); /* bench.c */
void scale_goroutines(void);                                           /* scale.c */
void scale_procs(void);
int serve_echo(const char *addr); /* serve.c: never come back unless they fail */
int serve_http(const char *addr);

#endif
