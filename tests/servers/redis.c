/* hiredis in goroutines. Arguments: port, pid of the server. */
#include "server.h"
#include <hiredis/hiredis.h>
#include <sys/resource.h>

static int port, pid;
static redisContext *ctx[CALLERS];

static redisContext *dial(void) {
    redisContext *c = redisConnect("127.0.0.1", port);
    CHECKF(c && !c->err, "%s", c ? c->errstr : "no memory");
    return c;
}

static void pop(int i) {
    redisReply *r = redisCommand(ctx[i], "BLPOP nothing:%d 0.2", i);
    CHECKF(r, "%s", ctx[i]->errstr);
    CHECK_EQ(r->type, REDIS_REPLY_NIL);
    freeReplyObject(r);
}

static void values(int i) {
    char want[32];
    snprintf(want, sizeof want, "value %d", i);
    for (int k = 0; k < 5; k++) {
        freeReplyObject(redisCommand(ctx[i], "SET key:%d:%d %s", i, k, want));
        redisReply *r = redisCommand(ctx[i], "GET key:%d:%d", i, k);
        CHECK(r && r->type == REDIS_REPLY_STRING);
        CHECK_STR(r->str, want);
        freeReplyObject(r);
    }
}

static void values_all(void *arg) { values((int)(intptr_t)arg); }

#define ROUNDS 2000
static void get_loop(void *arg) {
    redisContext *c = ctx[(intptr_t)arg];
    for (int i = 0; i < ROUNDS; i++) {
        redisReply *r = redisCommand(c, "GET key:1:1");
        CHECK(r && r->type == REDIS_REPLY_STRING);
        freeReplyObject(r);
    }
}

static double cpu(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* In turns, the best of three each. Beside other load 64 threads get a larger share of the machine
 * than 2 do; what a request costs tells more then. */
static void throughput(void) {
    double gs = 1e9, ts = 1e9, gcpu = 1e9, tcpu = 1e9;
    for (int i = 0; i < 3; i++) {
        double a = cpu(), g = (double)timed_goroutines(64, get_loop) / 1e9;
        double b = cpu(), t = (double)timed_threads(64, get_loop) / 1e9, c = cpu();
        if (g < gs) gs = g;
        if (t < ts) ts = t;
        if (b - a < gcpu) gcpu = b - a;
        if (c - b < tcpu) tcpu = c - b;
    }
    printf("64 clients: %.0f requests/s in goroutines, %.0f in threads: %.2f; CPU a request %.1f "
           "and %.1f us\n",
           64 * ROUNDS / gs, 64 * ROUNDS / ts, ts / gs, gcpu / 64 / ROUNDS * 1e6,
           tcpu / 64 / ROUNDS * 1e6);
    if (getenv("STRICT")) CHECKF(ts / gs >= 0.85, "slower than threads");
}

static int killed;
static void until_killed(void *arg) {
    redisContext *c = ctx[(intptr_t)arg];
    CHECK(redisCommand(c, "BLPOP nothing 100") == NULL);
    CHECK(c->err == REDIS_ERR_EOF || c->err == REDIS_ERR_IO);
    add(&killed, 1);
}

static bool refused(void) {
    redisContext *c = redisConnect("127.0.0.1", port);
    bool is = c && c->err == REDIS_ERR_IO && strstr(c->errstr, "refused");
    redisFree(c);
    return is;
}

static void errors(void) {
    struct timeval tv = {0, 100000};
    CHECK_EQ(redisSetTimeout(ctx[0], tv), REDIS_OK);
    CHECK(redisCommand(ctx[0], "BLPOP nothing 100") == NULL);
    CHECK_EQ(ctx[0]->err, REDIS_ERR_IO);
    redisFree(ctx[0]);
    for (intptr_t i = 1; i < 20; i++) gort_go(until_killed, (void *)i);
    gort_sleep(100 * GORT_MS);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    wait_until(get(&killed) == 19);
    wait_until(refused()); /* its connections are gone a little before its socket */
    /* the kernel accepts it */
    redisContext *c = redisConnectWithTimeout("127.0.0.1", silent_port(), tv);
    CHECK(c && !c->err);
    CHECK_EQ(redisSetTimeout(c, tv), REDIS_OK);
    CHECK(redisCommand(c, "PING") == NULL);
    CHECK_EQ(c->err, REDIS_ERR_IO);
    CHECK(strstr(c->errstr, "temporarily unavailable") != NULL); /* EAGAIN, as in a thread */
    redisFree(c);
}

static int run(int argc, char **argv) {
    for (int i = 0; i < CALLERS; i++) ctx[i] = dial();
    together("redis", pop);
    timed_goroutines(CALLERS, values_all);
    if (!quick()) throughput();
    errors();
    return 0;
}

int main(int argc, char **argv) {
    port = atoi(argv[1]);
    pid = atoi(argv[2]);
    return gort_main(run, argc, argv);
}
