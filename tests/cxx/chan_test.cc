/* Channels of things that are moved: who owns an element, and when it is destroyed. */
#include "cxx.h"
#include <string>

using gort::chan;
using gort::error;

static_assert(gort::detail::travels<int> == gort::detail::travel::as_it_is);
static_assert(gort::detail::travels<std::unique_ptr<int>> == gort::detail::travel::relocated);
static_assert(gort::detail::travels<std::string> == gort::detail::travel::boxed);
static_assert(gort::detail::travels<counted> == gort::detail::travel::boxed);
static_assert(sizeof(chan<int>) == sizeof(void *));

struct fixed { /* neither copied nor assigned, and larger in its alignment than gort_alloc's */
    alignas(64) const int n;
    explicit fixed(int number) : n(number) {}
    fixed(fixed &&from) noexcept : n(from.n) {}
};

static void results() {
    chan<int> c(1);
    error why;
    CHECK(!c.try_recv(why) && why.would_block() &&
          why == std::errc::resource_unavailable_try_again);
    CHECK(!c.send(1));
    CHECK(c.try_send(2).would_block());
    CHECK(c.send_for(1ms, 2).timed_out());
    CHECK(c.send_until(gort::clock::now(), 2) == std::errc::timed_out);
    CHECK_EQ(c.len(), 1);
    CHECK_EQ(c.cap(), 1);
    CHECK(!c.close());
    CHECK(c.close().closed());
    CHECK(c.send(3).closed());
    CHECK_EQ(c.recv(why).value_or(-1), 1);
    CHECK(!why);
    CHECK(!c.recv(why) && why.closed());
    CHECK(!c.recv());
    CHECK(!c.try_recv(why) && why.closed());
    std::error_code code = why;
    CHECK(code == std::errc::broken_pipe && !why.message().empty());
    chan<int> d;
    CHECK(!d.recv_for(1ms, why) && why.timed_out());
    CHECK(!d.recv_until(std::chrono::steady_clock::now() + 1ms, why) && why.timed_out());
    CHECK(!d.recv_until(std::chrono::system_clock::time_point::min(), why) && why.timed_out());
    CHECK(!d.recv_until(0) && !d.recv_for(-1h));
    CHECK_EQ(gort::deadline(gort::clock::time_point::max()).native(), GORT_FOREVER);
    CHECK_EQ(gort::from_now(std::chrono::hours::max()).native(), GORT_FOREVER);
    CHECK_EQ(gort::deadline(std::chrono::steady_clock::time_point::max()).native(), GORT_FOREVER);
}

static void handles() {
    chan<int> none = chan<int>::nil();
    CHECK(!none && none != chan<int>());
    CHECK(none.try_send(1).would_block() && !none.try_recv());
    chan<int> a(1), b(a);
    CHECK(a == b && a.native() == b.native());
    b.send(5);
    chan<int> c(std::move(b));
    CHECK(!b && a == c);
    b = a;
    a = chan<int>(2);
    c = std::move(b);
    CHECK_EQ(*c.recv(), 5);
    CHECK_EQ(a.cap(), 2);
    c = c;
    CHECK(c);
    /* the same with counted handles */
    chan<counted> m(1), n(m);
    n.send(counted(1));
    m = chan<counted>(4);
    CHECK_EQ(counted::alive, 1);
    chan<counted> o(std::move(n));
    n = chan<counted>::nil();
    CHECK_EQ(o.recv()->n, 1);
    CHECK_EQ(counted::alive, 0);
    chan<chan<int>> replies(1); /* a channel of channels */
    replies.send(c);
    CHECK(*replies.recv() == c);
    chan<std::int64_t> t = gort::after(1ms);
    CHECK(*t.recv() > 0);
}

template <class T, class Make, class Value> void travels_well(Make make, Value value) {
    /* over the buffer, and from hand to hand both ways */
    for (std::size_t capacity : {0, 1, 3}) {
        chan<T> c(capacity);
        gort::go([c, make] {
            for (int i = 0; i < 100; i++) CHECK(!c.send(make(i)));
            c.close();
        });
        int i = 0;
        for (T &v : c) CHECK_EQ(value(v), i++);
        CHECK_EQ(i, 100);
    }
    /* a failed send gives the object back */
    chan<T> c(1);
    T v = make(1), w = make(2);
    CHECK(!c.send(std::move(v)));
    CHECK(c.try_send(std::move(w)).would_block());
    CHECK_EQ(value(w), 2);
    CHECK(c.send_for(1ms, std::move(w)).timed_out());
    CHECK_EQ(value(w), 2);
    c.close();
    CHECK(c.send(std::move(w)).closed());
    CHECK_EQ(value(w), 2);
    /* so does one that waits when the channel is closed */
    chan<T> d;
    chan<void> done;
    gort::go([d, done, make, value] {
        T x = make(3);
        CHECK(d.send(std::move(x)).closed());
        CHECK_EQ(value(x), 3);
        done.send();
    });
    gort::sleep_for(2ms);
    d.close();
    done.recv();
    /* what is left at a close is still received */
    std::optional<T> left = c.recv();
    CHECK(left && value(*left) == 1);
    CHECK(!c.recv());
}

static void elements() {
    travels_well<int>([](int i) { return i; }, [](int i) { return i; });
    travels_well<counted>([](int i) { return counted(i); }, [](const counted &v) { return v.n; });
    travels_well<std::unique_ptr<int>>([](int i) { return std::make_unique<int>(i); },
                                       [](const std::unique_ptr<int> &v) { return *v; });
    travels_well<std::shared_ptr<int>>([](int i) { return std::make_shared<int>(i); },
                                       [](const std::shared_ptr<int> &v) { return *v; });
    travels_well<std::string>([](int i) { return std::to_string(i); },
                              [](const std::string &v) { return std::stoi(v); });
    travels_well<std::vector<std::any>>(
        [](int i) {
            return std::vector<std::any>{i, i};
        },
        [](const std::vector<std::any> &v) {
            CHECK_EQ(v.size(), 2);
            return std::any_cast<int>(v[0]);
        });
    travels_well<fixed>([](int i) { return fixed(i); },
                        [](const fixed &v) {
                            CHECK_EQ(reinterpret_cast<std::uintptr_t>(&v) % 64, 0);
                            return v.n;
                        });
    EVENTUALLY(counted::alive == 0);
    chan<std::string> c(2); /* copies and conversions */
    const std::string s = "stays";
    c.send(s);
    c.send("converted");
    CHECK(s == "stays" && *c.recv() == s && *c.recv() == "converted");
}

static void left_behind() {
    auto shared = std::make_shared<int>(1);
    {
        chan<counted> c(8);
        chan<std::shared_ptr<int>> d(8);
        chan<std::unique_ptr<int>> e(8);
        chan<counted> copy = c;
        for (int i = 0; i < 5; i++) {
            c.send(counted(i));
            d.send(shared);
            e.send(std::make_unique<int>(i));
        }
        CHECK_EQ(counted::alive, 5);
        CHECK_EQ(shared.use_count(), 6);
        c.close(); /* destroys nothing */
        c = chan<counted>::nil();
        CHECK_EQ(counted::alive, 5);
        CHECK_EQ(copy.recv()->n, 0);
    }
    CHECK_EQ(counted::alive, 0);
    CHECK_EQ(shared.use_count(), 1);
}

#ifdef __cpp_exceptions
struct fragile { /* its moves throw while armed */
    static inline std::atomic<bool> armed{false};
    counted c;
    explicit fragile(int i) : c(i) {}
    fragile(fragile &&from) : c(std::move(from.c)) {
        if (armed) throw 1;
    }
};
static void throwing_moves() {
    chan<fragile> c(2);
    fragile v(1);
    int caught = 0;
    fragile::armed = true;
    try {
        c.send(std::move(v));
    } catch (int) { caught++; }
    CHECK_EQ(c.len(), 0);
    fragile::armed = false;
    c.send(fragile(2));
    fragile::armed = true;
    try {
        c.recv();
    } catch (int) { caught++; }
    fragile::armed = false;
    CHECK_EQ(caught, 2);
    CHECK_EQ(c.len(), 0);
    CHECK_EQ(counted::alive, 1);
}
#else
static void throwing_moves() {}
#endif

static void signals() {
    chan<void> c, d(1);
    error why;
    CHECK(d.try_send() == error());
    CHECK(d.try_send().would_block() && d.send_for(1ms).timed_out());
    CHECK(d.send_until(0).timed_out());
    CHECK(d.recv() && !d.try_recv(why) && why.would_block());
    CHECK(!d.try_recv() && !d.recv_for(1ms) && !d.recv_for(1ms, why) && why.timed_out());
    CHECK(!d.recv_until(0) && !d.recv_until(0, why));
    gort::go([c] { c.send(), c.close(); });
    CHECK(c.recv(why) && !why);
    CHECK(!c.recv(why) && why.closed() && !c.recv());
    CHECK(!chan<void>::nil() && chan<void>::nil() == chan<void>::nil());
}

/* Many senders and receivers, on goroutines and plain threads. */
static void crowd() {
    const int senders = 8, each = 2000 / TEST_SCALE;
    chan<std::unique_ptr<long>> c(4);
    chan<counted> d(4);
    gort::wait_group all;
    std::atomic<long> sum{0};
    for (int s = 0; s < senders; s++)
        all.go([=] {
            for (int i = 0; i < each; i++) {
                c.send(std::make_unique<long>(i));
                d.send(counted(i));
            }
        });
    std::thread thread([=] {
        for (int i = 0; i < each; i++) d.send(counted(i));
    });
    gort::chan<void> done;
    for (int r = 0; r < 3; r++) {
        gort::go([=, &sum] {
            for (auto &p : c) sum += *p;
            done.send();
        });
        gort::go([=, &sum] {
            for (counted &v : d) sum += v.n;
            done.send();
        });
    }
    all.wait();
    gort::blocking([&] { thread.join(); });
    c.close(), d.close();
    for (int i = 0; i < 6; i++) done.recv();
    CHECK_EQ(sum, (2L * senders + 1) * each * (each - 1) / 2);
    EVENTUALLY(counted::alive == 0);
}

int main() {
    /* without a runtime, between plain threads */
    {
        chan<counted> c;
        std::thread t([c] { c.send(counted(3)); });
        CHECK_EQ(c.recv()->n, 3);
        t.join();
    }
    return gort::main([] {
        results();
        handles();
        elements();
        left_behind();
        throwing_moves();
        signals();
        crowd();
        all_ended();
    });
}
