/* Contexts and groups: what cancels what, and where errors and exceptions go. */
#include "cxx.h"
#include <string>

using namespace gort;

static void trees() {
    context root;
    context a = root.with_cancel(), b = a.with_timeout(1h), c = b.with_deadline(gort::forever);
    CHECK(!root.done() && !c.done() && !c.err());
    a.cancel();
    CHECK(!root.done() && a.done() && c.err().cancelled());
    CHECK(!c.done_chan().recv());
    context late = root.with_timeout(1ms);
    CHECK(!late.done_chan().recv());
    CHECK(late.err().timed_out());
    context_ref none;
    CHECK(!none.done() && !none.done_chan());
    none.cancel();
    context below = none.with_cancel(); /* a root */
    CHECK(!below.done());
    {
        context gone = root.with_cancel();
        below = gone.with_cancel(); /* moved into; what was there is released */
    }
    CHECK(below.done());
    context moved(std::move(root));
    CHECK(!root.native() && !moved.done());
    moved = std::move(moved);
}

static const context_key<const std::string> user;
static const context_key<int> depth;
static void values() {
    const std::string name = "ada";
    int n = 3;
    context root;
    context a = root.with_value(user, name), b = a.with_value(depth, n).with_cancel();
    CHECK(*b.value(user) == "ada");
    CHECK(!root.value(user) && !a.value(depth) && !context_ref().value(user));
}

static error fails() { return error(-EIO); }
static void groups() {
    std::atomic<int> ran{0};
    {
        group g;
        for (int i = 0; i < 10; i++) g.go([&] { ran++; });
        g.go([&](context_ref ctx) { return ran++, ctx.done() ? -EINVAL : 1; });
        CHECK(!g.wait());
        CHECK_EQ(ran, 11);
        CHECK(!g.wait()); /* nothing is left */
    }
    {
        group g(2); /* at most two */
        std::atomic<int> inside{0};
        for (int i = 0; i < 20; i++)
            g.go([&] {
                CHECK(++inside <= 2);
                gort::yield();
                inside--;
            });
        CHECK(!g.wait());
    }
    {
        context root;
        group g(root);
        chan<counted> never;
        g.go([=, c = counted(1)](context_ref ctx) {
            gort::select(on_recv(never, [](auto) {}), on_done(ctx, [] {}));
            return ctx.err();
        });
        g.go(fails);
        CHECK(g.wait() == std::errc::io_error);
        CHECK(!root.done());
    }
    {
        group g(1);
        chan<void> hold;
        CHECK(g.try_go([=] { hold.recv(); }));
        CHECK(!g.try_go([c = counted(2)] {}));
        auto job = [c = counted(2), p = std::make_unique<int>(42), &ran] { ran = *p; };
        CHECK(!g.try_go(std::move(job))); /* and the job is the caller's still */
        job();
        CHECK_EQ(ran, 42);
        std::function<void()> other = [&ran] { ran = 43; };
        CHECK(!g.try_go(std::move(other)));
        other();
        CHECK_EQ(ran, 43);
        hold.send();
        g.go(std::move(job));
        CHECK(!g.wait());
        CHECK_EQ(ran, 42);
    }
    { /* not waited for: cancelled, and waited for */
        group g;
        g.go([&](context_ref ctx) {
            ctx.done_chan().recv();
            ran = -1;
        });
    }
    CHECK_EQ(ran, -1);
    EVENTUALLY(counted::alive == 0);
}

/* A context in use ends what waits; uses nest as scopes, also where an exception leaves them. */
static void uses() {
    chan<int> never;
    error why;
    CHECK(!gort_ctx_use(nullptr));
    context root, other = root.with_cancel(), late = root.with_timeout(1ms);
    {
        use_context outer(other);
        CHECK(gort_ctx_use(other.native()) == other.native());
        {
            use_context inner(late);
            CHECK(!never.recv(why) && why.timed_out());
            CHECK_EQ(gort::select(on_recv(never, [](auto) {})), -ETIMEDOUT);
            {
                use_context none{context_ref()};
                CHECK(!never.recv_for(1ms, why) && why.timed_out());
                chan<int> one(1);
                CHECK(!one.send(7) && *one.recv() == 7);
            }
            CHECK(never.send(7).timed_out());
        }
        CHECK(gort_ctx_use(other.native()) == other.native());
        go([&] { other.cancel(); });
        CHECK(!never.recv(why) && why.cancelled());
#ifdef __cpp_exceptions
        try {
            use_context inner(late);
            throw 5;
        } catch (int) {}
        CHECK(gort_ctx_use(other.native()) == other.native());
#endif
    }
    CHECK(!gort_ctx_use(nullptr));
    group g; /* a member begins with the group's */
    g.go([=]() -> error {
        error e;
        never.recv(e);
        return e;
    });
    g.cancel();
    CHECK(g.wait().cancelled());
    std::thread plain([&] { /* a plain thread has one of its own */
                            error e;
                            use_context mine(other);
                            CHECK(!never.recv(e) && e.cancelled());
    });
    gort::blocking([&] { plain.join(); });
}

#ifdef __cpp_exceptions
static void exceptions() {
    int caught = 0;
    try {
        group g;
        g.go([](context_ref ctx) { /* the others are cancelled */
                                   ctx.done_chan().recv();
                                   throw std::logic_error("a later one");
        });
        g.go([c = counted(1)] { throw std::runtime_error("the first"); });
        g.wait();
    } catch (const std::runtime_error &e) {
        CHECK_STR(e.what(), "the first");
        caught++;
    }
    try { /* one on its way is told, that of a member meanwhile is not */
        group g;
        g.go([](context_ref ctx) {
            ctx.done_chan().recv();
            throw std::logic_error("of a member");
        });
        throw 5;
    } catch (int) { caught++; }
    CHECK_EQ(caught, 2);
    CHECK_EQ(counted::alive, 0);
}
#else
static void exceptions() {}
#endif

int main() {
    return gort::main([] {
        trees();
        values();
        groups();
        uses();
        exceptions();
        all_ended();
    });
}
