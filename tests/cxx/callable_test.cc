/* Whatever can be called may be given to whatever takes a function: each template of gort.hpp
 * with functions, pointers, references and lambdas of every kind. Member pointers go where the
 * arguments are given along: go, go_with, wait_group::go. */
#include "cxx.h"

using namespace gort;

static std::atomic<int> called{0};
static int expected = 0;
/* The callable has run once more. */
static void runs() {
    expected++;
    EVENTUALLY(called >= expected);
    CHECK_EQ(called, expected);
}

template <class R> R done() {
    called++;
    if constexpr (!std::is_void_v<R>) return R();
}
template <class R, class... A> R plain(A...) { return done<R>(); }
template <class R, class... A> R quiet(A...) noexcept { return done<R>(); }
template <class R, class... A> struct object { /* may only be moved */
    std::unique_ptr<int> mine = std::make_unique<int>(1);
    R operator()(A...) {
        CHECK(mine); /* nobody has moved it away and called it all the same */
        return done<R>();
    }
};

/* take gets each kind of callable that takes A... and returns R. */
template <class R, class... A, class Take> void each_kind(Take take) {
    const auto one = [&](auto &&f) { take(std::forward<decltype(f)>(f)), runs(); };
    R (*pointer)(A...) = plain<R, A...>;
    R (*const constant)(A...) noexcept = quiet<R, A...>;
    R (&reference)(A...) = plain<R, A...>;
    const auto lambda = [](A...) { return done<R>(); };
    auto changes = [n = 0](A...) mutable { return n++, done<R>(); };
    const auto silent = [](A...) noexcept { return done<R>(); };
    const std::function<R(A...)> function = lambda;
    one(plain<R, A...>);
    one(quiet<R, A...>);
    one(std::move(reference));
    one(&plain<R, A...>);
    one(&quiet<R, A...>);
    one(pointer);
    one(constant);
    one(reference);
    one(lambda);
    one(changes);
    one(silent);
    one(std::move(silent));
    one(function);
    one(std::function<R(A...)>(function));
    one([](A...) { return done<R>(); });
    one([n = 0](A...) mutable { return n++, done<R>(); });
    one([p = std::make_unique<int>(1)](A...) { return static_cast<void>(*p), done<R>(); });
    one(std::ref(changes));
    one(std::cref(lambda));
    one(object<R, A...>());
}
/* Callables that are not copied, and so can be lent: what takes them does so by reference. */
template <class R, class... A, class Take> void each_lent(Take take) {
    object<R, A...> immovable;
    const auto owner = [p = std::make_unique<int>(1)](A...) {
        return static_cast<void>(*p), done<R>();
    };
    each_kind<R, A...>(take);
    take(immovable), runs();
    take(owner), runs();
}
#define TAKE(...) [&](auto &&f) { __VA_ARGS__; }
#define F std::forward<decltype(f)>(f)

struct method {
    void run() { called++; }
    void quiet(int) const noexcept { called++; }
};

static void goroutines() {
    each_kind<void>(TAKE(gort::go(F)));
    each_kind<int>(TAKE(gort::go(F)));
    each_kind<void, int>(TAKE(gort::go(F, 1)));
    each_kind<void>(TAKE(gort::go_with({"named"}, F)));
    each_kind<void, int>(TAKE(gort::go_with({"named"}, F, 1)));
    wait_group wg;
    each_kind<void>(TAKE(wg.go(F)));
    each_kind<void, int>(TAKE(wg.go(F, 1)));
    method m;
    gort::go(&method::run, &m), runs();
    gort::go(&method::quiet, m, 1), runs();
    gort::go_with({"named"}, &method::run, &m), runs();
    wg.go(&method::quiet, std::ref(m), 1), runs();
    wg.wait();
}

static void blocking_and_once() {
    each_lent<void>(TAKE(gort::blocking(F)));
    each_lent<int>(TAKE(CHECK_EQ(gort::blocking(F), 0)));
    each_lent<std::unique_ptr<int>>(TAKE(CHECK(!gort::blocking(F))));
    each_lent<void>(TAKE(gort::once o; o.call(F); o.call(F)));
    each_lent<int>(TAKE(gort::once o; o.call(F)));
}

static void groups() {
    group g, one(1);
    each_kind<void>(TAKE(g.go(F)));
    each_kind<int>(TAKE(g.go(F)));
    each_kind<error>(TAKE(g.go(F)));
    each_kind<void, context_ref>(TAKE(g.go(F)));
    each_kind<int, context_ref>(TAKE(g.go(F)));
    each_kind<void>(TAKE(CHECK(g.try_go(F))));
    each_kind<error, context_ref>(TAKE(CHECK(g.try_go(F))));
    CHECK(!g.wait());
    /* what is refused is as it was */
    chan<void> hold;
    one.go([=] { hold.recv(); });
    object<void> once_only;
    std::function<void()> twice = plain<void>;
    CHECK(!one.try_go(std::move(once_only)) && !one.try_go(std::move(twice)));
    CHECK(!one.try_go(plain<void>) && !one.try_go(twice));
    CHECK(once_only.mine && twice);
    const auto owner = std::make_shared<int>(1);
    auto lambda = [owner] { return done<void>(); }; /* cannot be assigned */
    CHECK(!one.try_go(std::move(lambda)));
    CHECK_EQ(owner.use_count(), 2);
    hold.send();
    CHECK(!one.wait());
    lambda(), runs();
    once_only(), runs();
}

static void cases() {
    chan<int> c(1);
    chan<void> s(1);
    context root;
    root.cancel();
    const auto full = [&] { return c.send(1), c; };
    each_lent<void, std::optional<int>>(TAKE(gort::select(on_recv(full(), F))));
    each_lent<void, bool>(TAKE(s.send(); gort::select(on_recv(s, F))));
    each_lent<void>(TAKE(s.send(); gort::select(on_recv(s, F))));
    each_lent<void>(TAKE(gort::select(on_send(c, 1, F)); c.recv()));
    each_lent<int, error>(TAKE(int n = 1; gort::select(on_send(c, n, F)); c.recv()));
    each_lent<void>(TAKE(gort::select(on_send(s, F)); s.recv()));
    each_lent<void, error>(TAKE(gort::select(on_send(s, F)); s.recv()));
    each_lent<void>(TAKE(gort::select(on_done(root, F))));
    each_lent<void, bool>(TAKE(gort::select(on_done(root, F))));
    each_lent<void>(TAKE(gort::select(on_default(F))));
    each_lent<int>(TAKE(gort::select(until(0, F))));
    each_lent<void>(TAKE(gort::select(within(1us, F))));
}

static void predicates() {
    gort::mutex m;
    condition_variable cv;
    std::unique_lock<gort::mutex> lock(m);
    error why;
    each_kind<bool>(TAKE(CHECK(!cv.wait_for(lock, 0ms, F)); expected++));
    each_kind<bool>(TAKE(CHECK(!cv.wait_until(lock, 0, F)); expected++));
    each_kind<bool>(TAKE(CHECK(!cv.wait_until(lock, 0, why, F)); expected++));
    each_kind<bool>(TAKE(CHECK(!cv.wait_for(lock, 0ms, why, F)); expected++));
    CHECK(why.timed_out());
    const auto yes = [] { return true; };
    cv.wait(lock, yes);
}

int main(int argc, char **argv) {
    each_lent<void>(TAKE(CHECK_EQ(gort::main(F), 0)));
    each_lent<int>(TAKE(CHECK_EQ(gort::main(F), 0)));
    each_lent<int, int, char **>(TAKE(CHECK_EQ(gort::main(F, argc, argv), 0)));
    each_lent<void, int, char **>(TAKE(CHECK_EQ(gort::main(F, argc, argv), 0)));
    return gort::main([] {
        goroutines();
        blocking_and_once();
        groups();
        cases();
        predicates();
        all_ended();
    });
}
