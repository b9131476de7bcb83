/* Locks under the standard library's guards, conditions, semaphores, once, wait groups. */
#include "cxx.h"

static gort::mutex global_lock; /* constant initialization: usable before main */
static const int before_main = [] {
    std::lock_guard<gort::mutex> hold(global_lock);
    return 1;
}();

static void locks() {
    gort::mutex a, b;
    gort::wait_group all;
    long n = 0;
    for (int i = 0; i < 8; i++)
        all.go([&] {
            for (int k = 0; k < 500 / TEST_SCALE; k++) {
                std::lock_guard<gort::mutex> hold(a);
                n++;
            }
        });
    all.wait();
    CHECK_EQ(n, 8 * (500 / TEST_SCALE));
    std::unique_lock<gort::mutex> held(a);
    CHECK(!a.try_lock());
    CHECK(!a.try_lock_for(1ms));
    CHECK(!a.try_lock_until(std::chrono::system_clock::now() + 1ms));
    std::unique_lock<gort::mutex> other(a, 1ms);
    CHECK(!other.owns_lock());
    held.unlock();
    CHECK(other.try_lock_for(1s));
    other.unlock();
    for (int i = 0; i < 2; i++)
        all.go([&, i] { /* in either order */
                        for (int k = 0; k < 200 / TEST_SCALE; k++) {
                            std::scoped_lock hold(i ? a : b, i ? b : a);
                            n++;
                            gort::yield();
                        }
        });
    all.wait();
    CHECK_EQ(n, 8 * (500 / TEST_SCALE) + 2 * (200 / TEST_SCALE));
    CHECK_EQ(before_main, 1);
}

static void readers() {
    gort::shared_mutex m;
    std::shared_lock<gort::shared_mutex> one(m), two(m);
    CHECK(!m.try_lock() && !m.try_lock_for(1ms));
    CHECK(m.try_lock_shared());
    m.unlock_shared();
    one.unlock(), two.unlock();
    std::unique_lock<gort::shared_mutex> write(m);
    CHECK(!m.try_lock_shared() && !m.try_lock_shared_for(1ms));
    CHECK(!m.try_lock_shared_until(0));
    std::shared_lock<gort::shared_mutex> late(m, 1ms);
    CHECK(!late.owns_lock());
}

static void conditions() {
    gort::mutex m;
    gort::condition_variable c;
    gort::wait_group all;
    int stage = 0;
    for (int i = 1; i <= 5; i++)
        all.go([&, i] {
            std::unique_lock<gort::mutex> lock(m);
            c.wait(lock, [&] { return stage == i; });
            stage++;
            c.notify_all();
        });
    {
        std::unique_lock<gort::mutex> lock(m);
        CHECK(c.wait_for(lock, 1ms) == std::cv_status::timeout);
        CHECK(!c.wait_for(lock, 1ms, [&] { return stage == 6; }));
        CHECK(!c.wait_until(lock, gort::clock::now() + 1ms, [&] { return stage == 6; }));
        stage = 1;
        c.notify_all();
        CHECK(c.wait_until(lock, gort::forever, [&] { return stage == 6; }));
        CHECK(lock.owns_lock());
    }
    all.wait();
    gort::go([&] {
        std::lock_guard<gort::mutex> hold(m);
        stage = 7;
        c.notify_one();
    });
    std::unique_lock<gort::mutex> lock(m);
    while (stage != 7) c.wait(lock);
}

static void semaphores() {
    gort::semaphore s(2), none(0);
    s.acquire(2);
    CHECK(!s.try_acquire() && !s.try_acquire_for(1ms) && !none.try_acquire_until(0));
    gort::go([&] { s.release(3); });
    s.acquire(3);
    none.release();
    CHECK(none.try_acquire());
}

static void once_only() {
    gort::once o;
    std::atomic<int> ran{0};
    gort::wait_group all;
    for (int i = 0; i < 10; i++) all.go([&] { o.call([&] { ran++; }); });
    all.wait();
    CHECK_EQ(ran, 1);
#ifdef __cpp_exceptions
    gort::once p;
    const auto bad = [&] {
        ran++;
        throw 1;
    };
    try {
        p.call(bad);
        CHECK(false);
    } catch (int) {}
    p.call(bad);
    CHECK_EQ(ran, 2);
#endif
}

static void wait_groups() {
    gort::wait_group wg;
    gort::chan<void> go_on;
    wg.add();
    CHECK(!wg.wait_for(1ms) && !wg.wait_until(0));
    wg.done();
    CHECK(wg.wait_for(1s));
    wg.go([=](std::unique_ptr<int> p) { CHECK(*p == 5 && go_on.recv()); },
          std::make_unique<int>(5));
    go_on.send();
    wg.wait();
}

int main() {
    return gort::main([] {
        locks();
        readers();
        conditions();
        semaphores();
        once_only();
        wait_groups();
        gort::sleep_for(100us);
        gort::sleep_until(gort::clock::now() + 100us);
        gort::sleep_until(std::chrono::steady_clock::now());
        all_ended();
    });
}
