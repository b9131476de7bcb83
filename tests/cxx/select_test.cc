/* Select with lambdas: which case runs, and what happens to the objects of those that do not. */
#include "cxx.h"
#include <string>

using namespace gort;

static void each_kind() {
    chan<int> ints(1);
    chan<std::string> words(1);
    chan<void> sig(1);
    std::string got;
    ints.send(4);
    CHECK_EQ(gort::select(on_recv(words, [](std::optional<std::string>) { CHECK(false); }),
                          on_recv(ints, [&](std::optional<int> v) { got = std::to_string(*v); })),
             1);
    CHECK(got == "4");
    std::string item = "moved";
    CHECK_EQ(gort::select(on_send(words, std::move(item), [&] { got = "sent"; }),
                          on_recv(ints, [](auto) { CHECK(false); })),
             0);
    CHECK(got == "sent" && words.len() == 1);
    CHECK(*words.recv() == "moved");
    const std::string keep = "copied";
    CHECK_EQ(gort::select(on_send(words, keep)), 0);
    CHECK(keep == "copied" && *words.recv() == "copied");
    CHECK_EQ(gort::select(on_send(words, "literal"), on_default()), 0);
    CHECK(*words.recv() == "literal");
    CHECK_EQ(gort::select(on_send(sig)), 0);
    CHECK_EQ(gort::select(on_send(sig, [] { CHECK(false); }), on_recv(sig, [&] { got = "bare"; })),
             1);
    CHECK(got == "bare");
    const auto by_name = [&](std::optional<int> v) { got = v ? "some" : "none"; };
    ints.send(1);
    gort::select(on_recv(ints, by_name));
    CHECK(got == "some");
}

static void none_ready() {
    chan<int> ints;
    int ran = 0;
    CHECK_EQ(gort::select(on_recv(ints, [](auto) {}), on_default([&] { ran = 1; })), 1);
    CHECK_EQ(gort::select(on_default([&] { ran += 2; }), on_send(ints, 1)), 0);
    CHECK_EQ(gort::select(within(1ms, [&] { ran += 4; }), on_recv(ints, [](auto) {})), 0);
    CHECK_EQ(gort::select(on_recv(ints, [](auto) {}), until(clock::now(), [&] { ran += 8; })), 1);
    CHECK_EQ(gort::select(until(std::chrono::steady_clock::now() + 1ms)), 0);
    CHECK_EQ(gort::select(on_default()), 0);
    CHECK_EQ(gort::select(on_recv(chan<int>::nil(), [](auto) {}),
                          on_send(chan<std::string>::nil(), "x"), within(1ms)),
             2);
    CHECK_EQ(ran, 15);
}

/* The object of a case that does not run is as it was, in the functions of the others already. */
static void given_back() {
    chan<counted> out;
    chan<std::unique_ptr<int>> out2;
    chan<int> in(1);
    counted one(1);
    auto two = std::make_unique<int>(2);
    for (int i = 0; i < 10; i++) {
        in.send(i);
        gort::select(on_send(out, std::move(one)), on_send(out2, std::move(two)),
                     on_recv(in, [&](std::optional<int> v) {
                         CHECK_EQ(*v, i);
                         CHECK_EQ(one.n, 1);
                         CHECK(two && *two == 2);
                     }));
        gort::select(on_send(out, std::move(one)), on_send(out2, std::move(two)),
                     on_default([&] { CHECK(one.n == 1 && two); }));
    }
    out.close();
    error why;
    gort::select(on_send(out, std::move(one), [&](error e) { why = e; }));
    CHECK(why.closed());
    CHECK_EQ(one.n, 1);
    CHECK_EQ(counted::alive, 1);
    gort::go([out2] {
        auto p = out2.recv();
        CHECK_EQ(**p, 2);
    });
    gort::select(on_send(out2, std::move(two), [&] { CHECK(!two); }));
}

/* Go's `select { case a <- x: case b <- x: }`: the same object, moved (m) or copied (c) by each. */
template <class T>
int send_either(const std::string &how, const chan<T> &a, const chan<T> &b, T &x) {
    if constexpr (std::is_copy_constructible_v<T>) {
        if (how == "cm") return gort::select(on_send(a, x), on_send(b, std::move(x)), on_default());
        if (how == "mc") return gort::select(on_send(a, std::move(x)), on_send(b, x), on_default());
        if (how == "cc") return gort::select(on_send(a, x), on_send(b, x), on_default());
    }
    return gort::select(on_send(a, std::move(x)), on_send(b, std::move(x)), on_default());
}
template <class T, class Make, class Value> void same_object(Make make, Value value) {
    for (const std::string how : {"mm", "cm", "mc", "cc"}) {
        chan<T> full, a(1), b(1);
        T x = make(5);
        CHECK_EQ(send_either(how, full, b, x), 1);
        CHECK_EQ(value(*b.recv()), 5);
        T y = make(6);
        CHECK_EQ(send_either(how, a, full, y), 0);
        CHECK_EQ(value(*a.recv()), 6);
        T z = make(7); /* none has room, one is nil: z is as it was, and goes once */
        CHECK_EQ(send_either(how, full, full, z), 2);
        CHECK_EQ(send_either(how, chan<T>::nil(), full, z), 2);
        CHECK_EQ(value(z), 7);
        CHECK_EQ(send_either(how, chan<T>::nil(), b, z), 1);
        CHECK_EQ(value(*b.recv()), 7);
        T w = make(8); /* both have room */
        CHECK_EQ(value(*(send_either(how, a, b, w) == 0 ? a : b).recv()), 8);
        CHECK_EQ(a.len() + b.len(), 0);
        T v = make(9); /* both are closed */
        a.close(), b.close();
        error why;
        gort::select(on_send(a, std::move(v), [&](error e) { why = e; }),
                     on_send(b, std::move(v), [&](error e) { why = e; }));
        CHECK(why.closed());
        CHECK_EQ(value(v), 9);
    }
}
/* The receiver comes while the select waits. */
static void same_object_waits() {
    chan<counted> a, b;
    chan<std::unique_ptr<int>> c;
    for (int i = 0; i < 200 / TEST_SCALE; i++) {
        counted x(i);
        auto p = std::make_unique<int>(i);
        gort::go([=] { CHECK_EQ((i % 2 ? a : b).recv()->n, i); });
        CHECK_EQ(gort::select(on_send(b, std::move(x)), on_send(c, std::move(p)),
                              on_send(a, std::move(x)), on_send(c, std::move(p))),
                 i % 2 ? 2 : 0);
        CHECK(x.n == -1 && p && *p == i);
    }
    EVENTUALLY(counted::alive == 0);
}
/* A part of what another case moves: copies are taken first; moved, it would be in two places. */
static void parts() {
    struct whole {
        counted c;
        int n;
    };
    chan<whole> wholes;
    chan<counted> halves(1);
    chan<int> ints(1);
    whole w{counted(3), 4};
    CHECK_EQ(gort::select(on_send(wholes, std::move(w)), on_send(halves, w.c)), 1);
    CHECK_EQ(halves.recv()->n, 3);
    CHECK_EQ(gort::select(on_send(wholes, std::move(w)), on_send(ints, w.c.n)), 1);
    CHECK_EQ(*ints.recv(), 3);
    CHECK_EQ(gort::select(on_send(ints, std::move(w.c.n)), on_send(wholes, std::move(w))), 0);
    CHECK_EQ(*ints.recv(), 3);
    CHECK(w.c.n == 3 && w.n == 4);
#ifdef __cpp_exceptions
    int caught = 0;
    try {
        gort::select(on_send(wholes, std::move(w)), on_send(halves, std::move(w.c)));
    } catch (const std::system_error &e) {
        CHECK(e.code() == std::errc::invalid_argument);
        caught++;
    }
    CHECK_EQ(caught, 1);
    CHECK(w.c.n == 3 && w.n == 4 && halves.len() == 0);
#endif
}
static void same_objects() {
    same_object<int>([](int i) { return i; }, [](int i) { return i; });
    same_object<counted>([](int i) { return counted(i); }, [](const counted &v) { return v.n; });
    same_object<std::unique_ptr<int>>([](int i) { return std::make_unique<int>(i); },
                                      [](const std::unique_ptr<int> &v) { return v ? *v : -1; });
    same_object<std::shared_ptr<int>>([](int i) { return std::make_shared<int>(i); },
                                      [](const std::shared_ptr<int> &v) { return v ? *v : -1; });
    same_object<std::string>(
        [](int i) { return std::string(100, 'x') + std::to_string(i); },
        [](const std::string &v) { return v.empty() ? -1 : std::stoi(v.substr(100)); });
    same_object_waits();
    parts();
    CHECK_EQ(counted::alive, 0);
}

static void closed() {
    chan<counted> c(1);
    chan<void> s;
    int ran = 0;
    c.send(counted(1));
    c.close(), s.close();
    gort::select(on_recv(c, [&](std::optional<counted> v) { ran += v ? v->n : 100; }));
    gort::select(on_recv(c, [&](std::optional<counted> v) { ran += v ? 100 : 2; }));
    gort::select(on_recv(s, [&](bool open) { ran += open ? 100 : 4; }));
    gort::select(on_send(s, [&](error e) { ran += e.closed() ? 8 : 100; }));
    CHECK_EQ(ran, 15);
    CHECK_EQ(counted::alive, 0);
#ifdef __cpp_exceptions
    try { /* a function that cannot hear it */
        gort::select(on_send(c, counted(2), [&] { ran = 100; }));
    } catch (const std::system_error &e) {
        CHECK(e.code() == std::errc::broken_pipe);
        ran++;
    }
    try { /* an exception of the function's own */
        gort::select(on_recv(c, [](auto) { throw 3; }));
    } catch (int n) { ran += n; }
    CHECK_EQ(ran, 19);
    CHECK_EQ(counted::alive, 0);
#endif
}

static void contexts() {
    context root;
    chan<int> c;
    int ran = 0;
    gort::select(on_done(context_ref(), [] { CHECK(false); }), on_default([&] { ran++; }));
    gort::go([ctx = context_ref(root)] { ctx.cancel(); });
    CHECK_EQ(gort::select(on_recv(c, [](auto) {}), on_done(root, [&] { ran++; })), 1);
    CHECK_EQ(ran, 2);
}

/* Two that select over both directions of two channels until all is there. */
static void crowd() {
    const int n = 2000 / TEST_SCALE;
    chan<counted> there, back(1);
    wait_group both;
    std::atomic<int> sum{0};
    const auto player = [&](chan<counted> in, chan<counted> out) {
        int sent = 0, got = 0;
        counted next(0);
        while (sent < n || got < n)
            gort::select(on_recv(got < n ? in : chan<counted>::nil(),
                                 [&](std::optional<counted> v) { sum += v->n, got++; }),
                         on_send(sent < n ? out : chan<counted>::nil(), std::move(next),
                                 [&] { next = counted(++sent); }));
    };
    both.go(player, there, back);
    both.go(player, back, there);
    both.wait();
    CHECK_EQ(sum, n * (n - 1));
}

int main() {
    return gort::main([] {
        each_kind();
        none_ready();
        given_back();
        same_objects();
        closed();
        contexts();
        crowd();
        CHECK_EQ(counted::alive, 0);
        all_ended();
    });
}
