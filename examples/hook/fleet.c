/* A fleet of workers that share a Redis stream: how a program outgrows a machine. Redis hands each
 * entry to one worker, in whatever process, and what a dead worker has left the others claim.
 *   cc fleet.c -I../../include -L../../build -Wl,--no-as-needed -lgort-hook -lgort -lhiredis
 *   ./a.out PORT 500          20 workers, and 500 entries to be done
 *   ./a.out PORT              20 more workers, as many times and on as many machines as wanted
 * hiredis is plain, blocking C: libgort-hook.so lets each call block only its goroutine. */
#include <gort.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORKERS = 20 };
static int port, entries, mine; /* mine: done by this process */
static gort_wg wg;

static redisContext *dial(void) {
    redisContext *c = redisConnect("127.0.0.1", port);
    if (c && !c->err) return c;
    fprintf(stderr, "redis: %s\n", c ? c->errstr : "no memory");
    exit(1);
}

/* Without an answer this process ends; what it has in hand the others claim. */
static redisReply *got(redisContext *c, redisReply *r) {
    if (r && r->type != REDIS_REPLY_ERROR) return r;
    fprintf(stderr, "redis: %s\n", r ? r->str : c->errstr);
    exit(1);
}

/* Adds n to a number that the whole fleet shares. */
static long number(redisContext *c, const char *field, long n) {
    redisReply *r = redisCommand(c, "HINCRBY fleet:numbers %s %ld", field, n);
    long value = got(c, r)->integer;
    freeReplyObject(r);
    return value;
}

static int finished(redisContext *c) {
    long wanted = number(c, "wanted", 0);
    return wanted > 0 && number(c, "done", 0) >= wanted;
}

/* [[id, [field, value]], ...]: what this worker is the first to acknowledge counts. */
static void work_on(redisContext *c, const redisReply *list) {
    for (size_t i = 0; i < list->elements; i++) {
        redisReply **entry = list->element[i]->element;
        redisReply *ack = redisCommand(c, "XACK jobs fleet %s", entry[0]->str);
        if (got(c, ack)->integer == 1) {
            number(c, "sum", atol(entry[1]->element[1]->str));
            number(c, "done", 1);
            __atomic_add_fetch(&mine, 1, __ATOMIC_RELAXED);
        }
        freeReplyObject(ack);
    }
}

static void worker(void *arg) {
    redisContext *c = dial();
    int me = (int)(intptr_t)arg, read = 0;
    while (!finished(c)) {
        redisReply *r = redisCommand(
            c, "XREADGROUP GROUP fleet %d-%d COUNT 5 BLOCK 50 STREAMS jobs >", getpid(), me);
        if (got(c, r)->type == REDIS_REPLY_ARRAY) {
            if (me == 0 && read++ == 0) break; /* this one "dies" with entries not acknowledged */
            work_on(c, r->element[0]->element[1]);
        }
        freeReplyObject(r);
        r = redisCommand(c, "XAUTOCLAIM jobs fleet %d-%d 100 0 COUNT 5", getpid(), me);
        work_on(c, got(c, r)->element[1]);
        freeReplyObject(r);
    }
    redisFree(c);
}

static void producer(void *arg) {
    redisContext *c = dial();
    for (; entries > 0; entries--)
        freeReplyObject(got(c, redisCommand(c, "XADD jobs * n %d", entries)));
    redisFree(c);
}

static int start(int argc, char **argv) {
    if (argc < 2) return 2;
    port = atoi(argv[1]);
    entries = argc > 2 ? atoi(argv[2]) : 0;
    redisContext *c = dial();
    freeReplyObject(redisCommand(c, "XGROUP CREATE jobs fleet 0 MKSTREAM")); /* or it is there */
    number(c, "wanted", entries);
    for (intptr_t i = 0; i <= WORKERS; i++)
        if (gort_wg_go(&wg, i < WORKERS ? worker : producer, (void *)i) < 0) return 1;
    gort_wg_wait(&wg);
    fprintf(stderr, "%d of them here\n", mine);
    printf("%ld entries done, sum %ld\n", number(c, "done", 0), number(c, "sum", 0));
    redisFree(c);
    return 0;
}

int main(int argc, char **argv) { return gort_main(start, argc, argv); }
