// C++20: semaphores, latches, barriers and atomic waits are futexes; futures, conditions, static
// initialisers, call_once.
#include "crowd.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;

static std::counting_semaphore<1000> few(3);
static std::binary_semaphore one(1);
static std::atomic<int> inside, most, word, inits;
static std::latch *gate;
static std::barrier<> *wall;

static void semaphores(int) {
    few.acquire();
    int n = ++inside;
    CHECK(n <= 3);
    std::this_thread::sleep_for(10us);
    --inside;
    few.release();
    CHECK(!few.try_acquire_for(0us) || (few.release(), true));
    static int alone;
    one.acquire();
    CHECK(++alone == 1);
    std::this_thread::sleep_for(10us);
    --alone;
    one.release();
}

static void latches(int) {
    gate->arrive_and_wait();
    CHECK(gate->try_wait());
}

static void barriers(int) {
    for (int i = 0; i < 3; i++) wall->arrive_and_wait();
}

static void waits(int i) {
    for (int w; (w = word.load()) != i;) word.wait(w);
    word = i + 1;
    word.notify_all();
}

struct Slow {
    int value;
    Slow() {
        std::this_thread::sleep_for(5ms);
        value = ++inits;
    }
};
static Slow &slow() {
    static Slow it;
    return it;
}
static int thrice;
static int fails() {
    if (++thrice < 3) {
        std::this_thread::sleep_for(1ms);
        throw std::runtime_error("not yet");
    }
    return thrice;
}
static int sometimes() {
    static int it = fails();
    return it;
}

static void statics(int) {
    CHECK(slow().value == 1);
    for (;;) {
        try {
            CHECK(sometimes() == 3);
            return;
        } catch (const std::runtime_error &e) { CHECK(std::string(e.what()) == "not yet"); }
    }
}

static void futures(int i) {
    std::promise<int> promise;
    auto deferred = std::async(std::launch::deferred, [i] { return i + 1; });
    CHECK(deferred.get() == i + 1);
    auto f = promise.get_future();
    CHECK(f.wait_for(10us) == std::future_status::timeout);
    promise.set_value(i);
    CHECK(f.get() == i);
    if (i % 50 == 0)
        CHECK(std::async(std::launch::async, [i] {
                  std::this_thread::sleep_for(1ms);
                  return i * 2;
              }).get() == i * 2);
}

// The library hands the function over in a variable of the thread: each has its own, also after a
// wait for one that throws.
static std::once_flag shared_once;
static int tried, ran_by = -1;
static void onces(int i) {
    for (int round = 0; round < 2000; round++) {
        std::once_flag flag;
        int ran = -1;
        std::call_once(flag, [&] { ran = i; });
        CHECK(ran == i);
    }
    for (bool over = false; !over;) {
        try {
            std::call_once(shared_once, [&] {
                std::this_thread::sleep_for(100us);
                if (++tried < 40) throw i;
                ran_by = i;
            });
            over = true;
        } catch (int who) {
            CHECK(who == i); // its own
        }
    }
    CHECK(tried == 40 && ran_by >= 0);
}

static std::mutex mutex;
static std::condition_variable changed;
static std::condition_variable_any any;
static int turn;

static void conditions(int i) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [i] { return turn == i; });
    turn++;
    changed.notify_all();
    CHECK(!any.wait_for(lock, 10us, [] { return false; }));
}

static int run(int, char **) {
    crowd("C++ semaphores", semaphores);
    gate = new std::latch(crowd_size());
    crowd("C++ latches", latches);
    wall = new std::barrier<>(crowd_size());
    crowd("C++ barriers", barriers);
    crowd("C++ atomic waits", waits);
    crowd("C++ static initialisers", statics);
    crowd("C++ call_once", onces);
    crowd("C++ futures", futures);
    crowd("C++ conditions", conditions);
    return 0;
}
int main(int argc, char **argv) { return gort_main(run, argc, argv); }
