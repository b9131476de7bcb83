/* A context in use that is done: what can tell the error is ended by it, what has a word for a
 * timeout only waits for its deadline, and no deadline is said to have passed that has not. */
#include "cxx.h"
#include <mutex>

using namespace gort;

/* A use as long as it lives. (Any wrapper would do; the C call is what is wrapped.) */
class use {
  public:
    explicit use(const context_ref &ctx) { gort_ctx_use(ctx.native()); }
    use(const use &) = delete;
    ~use() { gort_ctx_use(nullptr); }
};

/* Each way in which a context may be done: before the wait, or while it lasts. */
template <class Body> void each_end(Body body) {
    context root;
    context cancelled = root.with_cancel(), late = root.with_deadline(0), soon = root.with_cancel();
    const context expires = root.with_timeout(1ms);
    cancelled.cancel();
    gort::go([ref = context_ref(soon)] { ref.cancel(); });
    for (context_ref ctx :
         {context_ref(cancelled), context_ref(late), context_ref(soon), context_ref(expires)}) {
        const use in(ctx);
        const error end = ctx.native() == late.native() || ctx.native() == expires.native()
                              ? error(-ETIMEDOUT)
                              : error(-ECANCELED);
        body(end);
        CHECK(ctx.err() == end && gort_ctx_used() == ctx.native()); /* still in use */
    }
}

static void selects() {
    each_end([](error end) {
        chan<int> never, open(1);
        const auto bad = [] { CHECK(false); };
        const auto no_int = [](std::optional<int>) { CHECK(false); };
        CHECK_EQ(gort::select(on_recv(never, no_int), within(1h, bad)), end.value());
        CHECK_EQ(gort::select(until(forever, bad), on_recv(never, no_int)), end.value());
        CHECK_EQ(gort::select(on_recv(never, no_int)), end.value());
        CHECK_EQ(gort::select(on_send(never, 1, bad)), end.value());
        /* what need not wait goes ahead */
        CHECK_EQ(gort::select(on_recv(never, no_int), on_default()), 1);
        CHECK_EQ(gort::select(on_send(open, 1), within(1h, bad)), 0);
        CHECK_EQ(gort::select(on_send(open, 1, bad), on_recv(open, [](auto) {})), 1);
    });
    context ctx = context().with_cancel();
    const use in(ctx);
    chan<int> never;
    int ran = 0;
    CHECK_EQ(gort::select(on_recv(never, [](auto) {}), within(1ms, [&] { ran++; })), -ECANCELED);
    CHECK_EQ(ran, 0);
}

/* The deadline passes first, in use or not. */
static void deadlines() {
    context root;
    const use in(root);
    chan<int> never;
    int ran = 0;
    CHECK_EQ(gort::select(on_recv(never, [](auto) {}), within(1ms, [&] { ran++; })), 1);
    CHECK_EQ(gort::select(until(0, [&] { ran++; })), 0);
    CHECK_EQ(ran, 2);
    CHECK(!gort::sleep_for(10us) && !gort::sleep_until(0));
    error why;
    wait_group wg;
    wg.add();
    CHECK(!wg.wait_for(1ms, why) && why.timed_out());
    wg.done();
    CHECK(wg.wait_until(0, why) && !why);
}

static void sleeps() {
    each_end([](error end) {
        CHECK(gort::sleep_for(1h) == end);
        CHECK(gort::sleep_until(forever) == end);
        CHECK(gort::sleep_until(std::chrono::steady_clock::now() + 1h) == end);
    });
}

static void channels() {
    each_end([](error end) {
        chan<std::string> c, full(1);
        chan<void> s;
        error why;
        CHECK(!c.recv(why) && why == end);
        CHECK(!c.recv_for(1h, why) && why == end);
        CHECK(!s.recv(why) && why == end);
        CHECK(s.send_for(1h) == end);
        std::string x = "stays";
        CHECK(c.send(std::move(x)) == end && x == "stays");
        CHECK(c.send_for(1h, std::move(x)) == end && x == "stays");
        full.send("first");
        int n = 0;
        for (const std::string &v : full.range(why)) n += v == "first";
        CHECK(n == 1 && why == end);
        for (const std::string &v : full) n += v.empty() + 100;
        CHECK_EQ(n, 1);
    });
    chan<int> c(3);
    error why(-EIO);
    for (int i = 0; i < 3; i++) c.send(i);
    for (int v : chan<int>(c).range(why)) /* the handle need not outlive the loop's head */
        if (v == 1) break;
    CHECK(!why && c.len() == 1);
    c.close();
    int n = 0;
    for (int v : c.range(why)) n += v;
    CHECK(n == 2 && why.closed());
}

/* Does what the standard's names may wait for, each with its deadline. */
static gort::mutex held;
static gort::shared_mutex held_too;
static gort::semaphore none(0);
static gort::wait_group under_way;
static condition_variable silent;

static void told() {
    each_end([](error end) {
        gort::mutex m;
        std::unique_lock<gort::mutex> lock(m);
        const auto no = [] { return false; };
        error why;
        const auto is_end = [&] { return std::exchange(why, error()) == end; };
        CHECK(!held.try_lock_for(1h, why) && is_end());
        CHECK(!held.try_lock_until(forever, why) && is_end());
        CHECK(!held_too.try_lock_for(1h, why) && is_end());
        CHECK(!held_too.try_lock_shared_for(1h, why) && is_end());
        CHECK(!none.try_acquire_for(1h, why) && is_end());
        CHECK(!none.try_acquire_until(forever, why, 2) && is_end());
        CHECK(!under_way.wait_for(1h, why) && is_end());
        CHECK(silent.wait_for(lock, 1h, why) == std::cv_status::timeout && is_end());
        CHECK(silent.wait_until(lock, forever, why) == std::cv_status::timeout && is_end());
        CHECK(!silent.wait_for(lock, 1h, why, no) && is_end());
        CHECK(lock.owns_lock() && !m.try_lock());
        /* what need not wait goes ahead, and why is no error */
        why = end;
        CHECK(silent.wait_for(lock, 1h, why, [] { return true; }) && !why);
        why = end;
        CHECK(gort::shared_mutex().try_lock_for(1h, why) && !why);
        int asked = 0; /* true at last, though the wait was ended */
        CHECK(silent.wait_for(lock, 1h, why, [&] { return asked++ > 0; }) && !why);
    });
}

/* Fails, and not before the deadline. */
template <class Wait> void in_time(Wait wait) {
    const auto at = gort::clock::now() + 2ms;
    CHECK(!wait(at));
    CHECK(gort::clock::now() >= at);
}
static void not_ended() {
    each_end([](error) {
        gort::mutex m;
        std::unique_lock<gort::mutex> lock(m);
        in_time([](auto at) { return held.try_lock_until(at); });
        in_time([](auto) { return held.try_lock_for(2ms); });
        in_time([](auto at) { return std::unique_lock<gort::mutex>(held, at).owns_lock(); });
        in_time([](auto at) { return held_too.try_lock_until(at); });
        in_time([](auto at) { return held_too.try_lock_shared_until(at); });
        in_time([](auto at) { return none.try_acquire_until(at); });
        in_time([](auto) { return none.try_acquire_for(2ms, 3); });
        in_time([](auto at) { return under_way.wait_until(at); });
        in_time([&](auto at) { return silent.wait_until(lock, at) == std::cv_status::no_timeout; });
        in_time([&](auto) { return silent.wait_for(lock, 2ms, [] { return false; }); });
    });
}

/* They do wait: the other side comes while they do, and they succeed. */
static void succeed() {
    each_end([](error) {
        gort::mutex m, other;
        condition_variable cv;
        semaphore s(0);
        wait_group wg;
        bool ready = false;
        chan<void> locked, over;
        wg.add();
        gort::go([&] {
            {
                std::lock_guard<gort::mutex> hold(other);
                locked.send();
                gort::sleep_for(1ms);
            }
            s.release();
            {
                std::lock_guard<gort::mutex> hold(m);
                ready = true;
                cv.notify_one();
            }
            wg.done();
            over.send();
        });
        while (!locked.try_recv()) gort::yield();
        CHECK(other.try_lock_for(1h));
        other.unlock();
        CHECK(s.try_acquire_for(1h));
        std::unique_lock<gort::mutex> lock(m);
        CHECK(cv.wait_for(lock, 1h, [&] { return ready; }));
        lock.unlock();
        CHECK(wg.wait_for(1h));
        while (!over.try_recv()) gort::yield();
    });
}

/* The owner lets the context go while it is in use, and put aside by a wait. */
static void released() {
    context_ref gone;
    {
        context ctx;
        gone = ctx;
        gort_ctx_use(ctx.native());
        gort::go([mine = std::make_shared<context>(std::move(ctx))]() mutable { mine.reset(); });
        in_time([](auto at) { return none.try_acquire_until(at); });
        EVENTUALLY(gort_ctx_err(gort_ctx_used()) != 0);
    }
    in_time([](auto at) { return none.try_acquire_until(at); });
    CHECK(gort_ctx_used() == gone.native());
    error why;
    CHECK(!chan<int>::nil().recv(why) && why.cancelled());
    gort_ctx_use(nullptr);
    CHECK(!gort_ctx_used());
}

/* A member of a group, whose context is in use from the beginning. */
static void members() {
    group g;
    std::atomic<int> ended{0};
    chan<int> never;
    for (int i = 0; i < 4; i++)
        g.go([&, i](context_ref ctx) {
            CHECK(gort_ctx_used() == ctx.native());
            if (i == 3) return error(-EIO);
            error why;
            if (i == 0) why = gort::sleep_for(1h);
            if (i == 1) why = error(gort::select(on_recv(never, [](auto) {}), within(1h)));
            if (i == 2)
                for (int v : never.range(why)) CHECK_EQ(v, -1);
            CHECK(why.cancelled());
            ended++;
            return why;
        });
    CHECK(g.wait() == std::errc::io_error);
    CHECK_EQ(ended, 3);
}

int main() {
    { /* a plain thread, without a runtime */
        context ctx;
        const use in(ctx);
        ctx.cancel();
        semaphore s(0);
        in_time([&](auto at) { return s.try_acquire_until(at); });
        error why;
        CHECK(!s.try_acquire_for(1h, why) && why.cancelled());
        CHECK(gort_ctx_used() == ctx.native());
    }
    return gort::main([] {
        held.lock(), held_too.lock(), under_way.add();
        selects();
        deadlines();
        sleeps();
        channels();
        told();
        not_ended();
        succeed();
        released();
        members();
        all_ended();
    });
}
