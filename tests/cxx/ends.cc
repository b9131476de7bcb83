/* Programs that end by an exception, or are refused: `ends WHICH`. The script says how. */
#include "cxx.h"
#include <pthread.h>
#include <unistd.h>

struct loud { /* destroyed where a stack is unwound */
    ~loud() { fprintf(stderr, "unwound\n"); }
};

static void throws(int n) {
    loud l;
    if (n == 7) throw n;
    if (n >= 0) throw std::runtime_error("the disk is on fire");
}

static void waits(const gort::chan<void> &c) { c.recv(); }

/* One goroutine by each call that starts one. */
static void creators(const gort::chan<void> &c) {
    static gort::wait_group wg;
    static gort::group g;
    gort::go(waits, c);
    gort::go([c] { c.recv(); });
    gort::go_with({"named"}, waits, c);
    wg.go(waits, c);
    g.go([c] { c.recv(); });
    if (g.try_go([c] { c.recv(); })) gort_dump(1);
}

/* What the live page says of them, in text, JSON and folded stacks. */
static void asks(const char *what) {
    const std::string page = "unix:@gort-ends-" + std::to_string(getpid());
    static const int listens = gort_debug_listen(page.c_str());
    gort::check(listens, "the page");
    const int fd = gort::check(gort_dial(page.c_str(), GORT_FOREVER));
    const std::string head = std::string("GET ") + what + " HTTP/1.0\r\nHost: localhost\r\n\r\n";
    gort::check(gort_write_full(fd, head.data(), head.size()));
    gort::check(gort_copy(1, fd));
    gort_close(fd);
}

static int run(const std::string &which) {
    gort::chan<void> never;
    if (which == "plain") gort::go(throws, 1);
    if (which == "named") gort::go_with({"fire brigade"}, [c = counted(1)] { throws(1); });
    if (which == "owned") gort::go([c = counted(1)] { throws(1); });
    if (which == "int") gort::go(throws, 7);
    if (which == "creators" || which == "page") creators(never);
    if (which == "page")
        for (const char *what : {"/goroutines", "/goroutines?format=json&filter=run_owned",
                                 "/debug/pprof/goroutine?format=folded", "/leaks?minutes=0",
                                 "/debug/pprof/created?format=svg"})
            asks(what);
    if (which == "creators" || which == "page") _Exit(0);
    if (which == "long") gort::go_with({"a name that is longer than 31 bytes are"}, throws, 1);
    if (which == "main") throws(1);
    gort::wait_group wg;
    if (which == "wg") wg.go(throws, 1);
    if (which == "group") {
        gort::chan<void> started;
        gort::group g;
        g.go([=] {
            started.send();
            throws(1);
        });
        started.recv();
    }
    if (which == "late") {
        gort::group g;
        g.go([] {});
        if (!g.wait()) g.go([] {});
    }
    if (which == "handler") {
        std::set_terminate([] {
            try {
                std::rethrow_exception(std::current_exception());
            } catch (const std::exception &e) { fprintf(stderr, "handler: %s\n", e.what()); }
            _Exit(3);
        });
        gort::go(throws, 1);
    }
    if (which == "noexcept") gort::go([]() noexcept { throws(1); });
    if (which == "pthread_exit") gort::go([] { pthread_exit(nullptr); });
    if (which == "caught") {
        gort::chan<int> c;
        wg.go([c] {
            try {
                throws(1);
            } catch (const std::exception &) { c.send(1); }
        });
        const int left = *c.recv() - 1;
        wg.wait(); /* the exception lives until its catch is left */
        return left;
    }
    never.recv();
    return 0;
}

int main(int argc, char **argv) {
    const std::string which = argc > 1 ? argv[1] : "";
    return gort::main([&] { return run(which); });
}
