/* Goroutines of closures: how they are moved, when they are destroyed, what they return. */
#include "cxx.h"

static void plain_function(gort::chan<int> c, int n) { c.send(n); }

struct method {
    int n = 0;
    void add_to(int more, gort::chan<void> done) {
        n += more;
        done.send();
    }
};

static void arguments() {
    gort::chan<int> c;
    gort::go(plain_function, c, 1);
    CHECK_EQ(*c.recv(), 1);
    gort::go([](gort::chan<int> to, int n) { to.send(n); }, c, 2);
    CHECK_EQ(*c.recv(), 2);
    method m;
    gort::chan<void> done;
    gort::go(&method::add_to, &m, 40, done);
    CHECK(done.recv());
    CHECK_EQ(m.n, 40);
    int here = 0; /* by reference, where that is said */
    gort::go([done](int &n) { n = 3, done.send(); }, std::ref(here));
    CHECK(done.recv());
    CHECK_EQ(here, 3);
    char literal[] = "decays";
    gort::go([c](const char *s) { c.send(static_cast<int>(strlen(s))); }, literal);
    CHECK_EQ(*c.recv(), 6);
}

static void moves() {
    gort::chan<int> c;
    auto p = std::make_unique<int>(7);
    gort::go([p = std::move(p), c] { c.send(*p); });
    CHECK_EQ(*c.recv(), 7);
    gort::go([c](std::unique_ptr<int> q) { c.send(*q); }, std::make_unique<int>(8));
    CHECK_EQ(*c.recv(), 8);
    {
        counted one(9);
        gort::go([one, c]() mutable { c.send(one.n); });
        gort::go([c](counted two) { c.send(two.n); }, std::move(one));
        CHECK_EQ(*c.recv() + *c.recv(), 18);
        CHECK_EQ(one.n, -1);
    }
    EVENTUALLY(counted::alive == 0);
    /* Vectors of anything: no list of initial values is meant. */
    std::vector<std::any> v{1, 2};
    gort::go([c](const std::vector<std::any> &w) { c.send(static_cast<int>(w.size())); }, v);
    CHECK_EQ(*c.recv(), 2);
}

/* The ways a closure may go: in the new stack, in an allocation, aligned, large. */
static void sizes() {
    gort::chan<long> c;
    struct alignas(64) aligned {
        long n;
    };
    struct large {
        long n[1000];
    };
    struct middle {
        long n[100];
    };
    using small = gort::detail::closure<middle>;
    static_assert(gort::detail::fits_copy<small> && !gort::detail::fits_copy<large>);
    gort::go(
        [c](const aligned &a) {
            c.send(reinterpret_cast<std::uintptr_t>(&a) % 64 == 0 ? a.n : -1);
        },
        aligned{5});
    CHECK_EQ(*c.recv(), 5);
    large l{};
    l.n[999] = 6;
    gort::go([c, l] { c.send(l.n[999]); });
    CHECK_EQ(*c.recv(), 6);
    static std::atomic<long> sum{0};
    middle m{};
    for (long i = 0; i < 200; i++) {
        m.n[99] = i;
        gort::go([m] { sum += m.n[99]; });
    }
    EVENTUALLY(sum == 199 * 100);
    gort::go([] { sum = -1; });
    EVENTUALLY(sum == -1);
}

static void names_and_calls() {
    gort::chan<std::uint64_t> c;
    gort::go_with(
        {"a name"}, [c](int) { c.send(gort::id()); }, 1);
    CHECK(*c.recv() > 1);
    gort::go_with({nullptr, 1 << 20}, [c] {
        volatile char deep[600 << 10];
        deep[0] = 1, deep[sizeof deep - 1] = 2;
        c.send(static_cast<std::uint64_t>(deep[0] + deep[sizeof deep - 1]));
    });
    CHECK_EQ(*c.recv(), 3);
    CHECK_EQ(gort::blocking([] { return 5; }), 5);
    CHECK_EQ(*gort::blocking([] { return std::make_unique<int>(6); }), 6);
    int done = 0;
    const auto set_done = [&] { done = 1; };
    gort::blocking(set_done);
    CHECK_EQ(done, 1);
    gort::yield();
    CHECK_EQ(gort::check(gort_count()), gort_count());
}

#ifdef __cpp_exceptions
static thread_local int own;

/* With the attribute `thread` it has variables of its own, beside another on the same P. */
static void threads() {
    gort::chan<int> before, after;
    gort::chan<void> go_on;
    try {
        for (int i = 1; i <= 2; i++)
            gort::go_with({"a thread", 0, true}, [=] {
                before.send(own);
                own = i;
                go_on.recv();
                after.send(own - i);
            });
    } catch (const std::system_error &e) {
        CHECK(e.code() == std::errc::not_supported); /* another libc or processor, a sanitizer */
        return;
    }
    for (int i = 0; i < 2; i++) CHECK_EQ(*before.recv(), 0);
    go_on.close();
    for (int i = 0; i < 2; i++) CHECK_EQ(*after.recv(), 0);
    all_ended();
}

static void exceptions() {
    int caught = 0;
    try {
        gort::blocking([]() -> int { throw 7; });
    } catch (int n) { caught = n; }
    CHECK_EQ(caught, 7);
    try {
        gort::check(gort_close(-1), "closing");
    } catch (const std::system_error &e) {
        CHECK(e.code() == std::errc::bad_file_descriptor);
        CHECK(strstr(e.what(), "closing"));
        caught = 8;
    }
    CHECK_EQ(caught, 8);
    try { /* a closure that is not started is destroyed */
        counted one(1);
        gort::go_with({nullptr, std::size_t{4} << 30}, [one] {});
    } catch (const std::system_error &e) {
        CHECK(e.code() == std::errc::invalid_argument);
        caught = 9;
    }
    CHECK_EQ(caught, 9);
    CHECK_EQ(counted::alive, 0);
}
static void no_runtime() {
    int caught = 0;
    try {
        gort::go([] {});
    } catch (const std::system_error &e) {
        CHECK(e.code() == std::errc::not_connected);
        CHECK(strstr(e.what(), "gort::main"));
        caught++;
    }
    try {
        gort::after(1ms);
    } catch (const std::system_error &e) {
        CHECK(e.code() == std::errc::not_connected);
        caught++;
    }
    CHECK_EQ(caught, 2);
}
#else
static void threads() {}
static void exceptions() {}
static void no_runtime() {}
#endif

int main(int argc, char **argv) {
    no_runtime();
    CHECK_EQ(gort::main([](int c, char **v) { return c + (v[c] == nullptr); }, argc, argv),
             argc + 1);
    int ran = 0;
    CHECK_EQ(gort::main([&] { ran = 1; }), 0);
    CHECK_EQ(ran, 1);
    std::unique_ptr<int> p(new int(4));
    CHECK_EQ(gort::main([q = std::move(p)] { return *q; }), 4);
    CHECK_EQ(gort::main([] { return gort::error(-EIO); }), EXIT_FAILURE);
    CHECK_EQ(gort::main([](int, char **) { return gort::error(); }), 0);
    const int seven = 7;
    CHECK_EQ(gort::main([&]() -> const int & { return seven; }), 7);
    return gort::main([] {
        arguments();
        moves();
        sizes();
        names_and_calls();
        threads();
        exceptions();
        all_ended();
    });
}
