// The C++ library in goroutines: its mutexes, conditions, once, threads, futures and exceptions,
// each
// of them held over a sleep, so that others of the same thread come by meanwhile.
#include <gort.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

using namespace std::chrono_literals;
enum { MANY = 200 };

static std::mutex plain;
static std::recursive_mutex recursive;
static std::timed_mutex timed;
static std::recursive_timed_mutex recursive_timed;
static std::shared_mutex shared;
static std::shared_timed_mutex shared_timed;
static std::condition_variable changed;
static std::once_flag once;
static pthread_once_t fails = PTHREAD_ONCE_INIT;
static std::atomic<int> tries, caught;
static int turn, inside;
static std::atomic<int> inits, done;

static void check(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::_Exit(1);
}
#define CHECK(cond) check(cond, #cond)

template <class M> static void alone(M &mutex, int &in) {
    std::unique_lock<M> lock(mutex);
    CHECK(++in == 1);
    std::this_thread::sleep_for(100us);
    CHECK(--in == 0);
}

template <class M> static void in_time(M &mutex) {
    std::unique_lock<M> lock(mutex, 1000s);
    CHECK(lock.owns_lock());
    std::this_thread::sleep_for(100us);
}

static void locks(int i) {
    static int a, b;
    alone(plain, a);
    {
        std::lock_guard<std::recursive_mutex> outer(recursive);
        alone(recursive, b);
    }
    in_time(timed);
    {
        std::unique_lock<std::recursive_timed_mutex> outer(recursive_timed, 1000s);
        in_time(recursive_timed);
    }
    {
        std::shared_lock<std::shared_mutex> lock(shared);
        std::this_thread::sleep_for(100us);
        CHECK(inside == 0);
    }
    if (i % 10 == 0) alone(shared, inside);
    {
        std::shared_lock<std::shared_timed_mutex> lock(shared_timed, 1000s);
        CHECK(lock.owns_lock());
        std::this_thread::sleep_for(100us);
    }
    if (i % 10 == 0) in_time(shared_timed);
}

static void conditions(int i) {
    std::unique_lock<std::mutex> lock(plain);
    changed.wait(lock, [i] { return turn == i; });
    turn++;
    changed.notify_all();
    CHECK(!changed.wait_for(lock, 1ms, [] { return false; }));
}

static void threads() {
    std::thread t([] { std::this_thread::sleep_for(1ms); });
    t.join();
    auto f = std::async(std::launch::async, [] {
        std::this_thread::sleep_for(1ms);
        return 7;
    });
    CHECK(f.get() == 7);
    try {
        throw std::string("thrown");
    } catch (std::string &s) {
        std::this_thread::sleep_for(1ms);
        CHECK(s == "thrown");
    }
}

// Many goroutines of one thread are inside of a catch, and leave it in another order than they
// came.
static void exceptions(int i) {
    try {
        try {
            throw std::string(40, (char)('a' + i % 26));
        } catch (std::string &s) {
            std::this_thread::sleep_for(std::chrono::microseconds((i * 37) % 2000));
            CHECK(s == std::string(40, (char)('a' + i % 26)));
            CHECK(std::uncaught_exceptions() == 0);
            std::this_thread::sleep_for(std::chrono::microseconds((i * 91) % 2000));
            CHECK(std::current_exception() != nullptr);
            throw;
        }
    } catch (std::string &s) {
        CHECK(s == std::string(40, (char)('a' + i % 26)));
        std::this_thread::sleep_for(100us);
    }
    CHECK(std::current_exception() == nullptr);
}

// A routine that throws has not been: the next one runs it. (By pthread_once: std::call_once keeps
// its function in a __thread variable.)
static void fails_at_first() {
    std::this_thread::sleep_for(1ms);
    if (tries++ < 3) throw 1;
}

static void one(void *arg) {
    int i = (int)(intptr_t)arg;
    std::call_once(once, [] {
        std::this_thread::sleep_for(1ms);
        inits++;
    });
    try {
        pthread_once(&fails, fails_at_first);
    } catch (int) { caught++; }
    locks(i);
    conditions(i);
    if (i % 20 == 0) threads();
    exceptions(i);
    done++;
}

static int start(int, char **) {
    for (intptr_t i = 0; i < MANY; i++) gort_go(one, (void *)i);
    while (done < MANY) std::this_thread::sleep_for(1ms);
    CHECK(inits == 1);
    CHECK(tries == 4);
    CHECK(caught == 3);
    return 0;
}

int main(int argc, char **argv) { return gort_main(start, argc, argv); }
