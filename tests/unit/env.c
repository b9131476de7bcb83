/* The environment: what is accepted, what is ignored, and that ignoring is said. */
#include "../lib/white.h"
#include "base/env.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static char said[4096];

/* env_read() with stderr caught. */
static void read_with(const char *name, const char *value) {
    char path[] = "/tmp/gort-env-XXXXXX";
    int fd = mkstemp(path), old = dup(2);
    CHECK(fd >= 0 && old >= 0);
    unlink(path);
    unsetenv("GORT_MAXPROCS");
    unsetenv("GORT_DEBUG");
    unsetenv("GORT_SIM");
    if (name) setenv(name, value, 1);
    dup2(fd, 2);
    env_read();
    dup2(old, 2);
    ssize_t n = pread(fd, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    close(fd);
    close(old);
}

static void maxprocs(void) {
    static const char *const bad[] = {"abc", "0", "-1", "", "4x", " 4", "+4", "1.5", "0x10"};
    read_with(NULL, NULL);
    int usual = settings.procs;
    CHECK(usual >= 1 && !settings.procs_from_env);
    CHECK_STR(said, "");
    read_with("GORT_MAXPROCS", "7");
    CHECK(settings.procs == 7 && settings.procs_from_env);
    CHECK_STR(said, "");
    read_with("GORT_MAXPROCS", "1025");
    CHECK_EQ(settings.procs, 1024);
    read_with("GORT_MAXPROCS", "99999999999999999999999");
    CHECK_EQ(settings.procs, 1024);
    CHECK_STR(said, "");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char want[200];
        read_with("GORT_MAXPROCS", bad[i]);
        CHECK(settings.procs == usual && !settings.procs_from_env);
        snprintf(want, sizeof want,
                 "gort: GORT_MAXPROCS=%s ignored: not a number, or less than 1\n", bad[i]);
        CHECK_STR(said, want);
    }
}

static void debug_names(void) {
    read_with("GORT_DEBUG",
              "schedtrace=1000,scheddetail=1,asyncpreemptoff=1,maxthreads=50,stack=64k,"
              "migrate=1,stall=200,signal=usr2,retake=hammer,uring=0,"
              "flight=5000,leak=10,maxstack=1m");
    CHECK_STR(said, "");
    CHECK_EQ(settings.schedtrace, 1000);
    CHECK(settings.scheddetail && settings.asyncpreemptoff && settings.migrate && !settings.uring);
    CHECK_EQ(settings.maxthreads, 50);
    CHECK_EQ(settings.stack_size, 65536);
    CHECK_EQ(settings.stall, 200);
    CHECK_EQ(settings.preempt_signal, SIGUSR2);
    CHECK_EQ(settings.retake, 2);
    CHECK_EQ(settings.flight, 5000);
    CHECK_EQ(settings.leak, 10 * 60 * 1000);
    CHECK_EQ(settings.maxstack, 1 << 20);
    read_with("GORT_DEBUG", "leak=30s");
    CHECK_EQ(settings.leak, 30 * 1000);
    read_with("GORT_DEBUG", "leak=200ms");
    CHECK_EQ(settings.leak, 200);
    read_with("GORT_DEBUG", "leak=ms");
    CHECK_STR(said, "gort: GORT_DEBUG=leak=ms ignored: bad value; leak=minutes: 0 to 5256000\n");
    read_with("GORT_DEBUG", "break=3");
#ifdef GORT_CHECKED
    CHECK_EQ(settings.break_step, 3);
#else
    CHECK_STR(said, "gort: GORT_DEBUG=break=3 ignored: unknown name, perhaps leak; "
                    "GORT_DEBUG=help lists all\n");
#endif
    read_with("GORT_DEBUG", "retake=off");
    CHECK(settings.retake == 1 && settings.maxthreads == 10000 && settings.uring);
}

static void debug_complaints(void) {
    read_with("GORT_DEBUG", "nosuch=1,,schedtrace=x,maxthreads=0,scheddetail,stack=1t,signal=9,"
                            "schedtrace=7");
    CHECK_STR(
        said,
        "gort: GORT_DEBUG=nosuch=1 ignored: unknown name; GORT_DEBUG=help lists all\n"
        "gort: GORT_DEBUG=schedtrace=x ignored: bad value; schedtrace=ms: 0 to 864000000\n"
        "gort: GORT_DEBUG=maxthreads=0 ignored: value out of range; maxthreads=n: 1 to "
        "4194304\n"
        "gort: GORT_DEBUG=scheddetail ignored: no value; scheddetail=1: 0 to 1\n"
        "gort: GORT_DEBUG=stack=1t ignored: bad value; stack=size: 16k to 1g\n"
        "gort: GORT_DEBUG=signal=9 ignored: bad value; signal=signal: a number, or urg, usr1, "
        "usr2, prof, io, winch\n");
    CHECK_EQ(settings.schedtrace, 7); /* the good ones still count */
    CHECK_EQ(settings.maxthreads, 10000);
    read_with("GORT_DEBUG", "");
    CHECK_STR(said, "");
    CHECK_EQ(settings.schedtrace, 0);
}

/* A typo names the nearest setting. */
static void debug_typos(void) {
    static const char *const typos[][2] = {{"schedtrase", "schedtrace"},
                                           {"stal", "stall"},
                                           {"fligth", "flight"},
                                           {"sysfalt", "sysfault"},
                                           {"max_threads", "maxthreads"},
                                           {"Leak", "leak"},
                                           {"asyncpremptoff", "asyncpreemptoff"},
                                           {"stacks", "stack"}};
    for (size_t i = 0; i < sizeof typos / sizeof *typos; i++) {
        char item[100], want[200];
        snprintf(item, sizeof item, "%s=1", typos[i][0]);
        read_with("GORT_DEBUG", item);
        snprintf(want, sizeof want,
                 "gort: GORT_DEBUG=%s ignored: unknown name, perhaps %s; GORT_DEBUG=help lists "
                 "all\n",
                 item, typos[i][1]);
        CHECK_STR(said, want);
    }
}

static void sim(void) {
    read_with("GORT_SIM", "42");
    CHECK_EQ(settings.sim, 42);
    read_with("GORT_SIM", "0xff");
    CHECK_EQ(settings.sim, 255);
    read_with("GORT_SIM", "0");
    CHECK(settings.sim != 0);
    read_with("GORT_SIM", "seed");
    CHECK(settings.sim == 0 && strstr(said, "gort: GORT_SIM=seed ignored") == said);
}

int main(void) {
    maxprocs();
    debug_names();
    debug_complaints();
    debug_typos();
    sim();
    return 0;
}
