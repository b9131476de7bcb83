// C++20's threads: jthread and stop tokens, latch, barrier, counting and binary semaphores, atomic
// waits, shared mutexes, condition_variable_any, async, call_once, thread_local objects, exceptions
// that cross threads.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <numeric>
#include <queue>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#define CHECK(x)                                                                 \
    do {                                                                         \
        if (!(x)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
            std::abort();                                                        \
        }                                                                        \
    } while (0)

using namespace std::chrono_literals;
static int crowd = 200;

static std::atomic<int> born, gone;
struct Own { // of a thread
    std::vector<int> values;
    Own() { born++; }
    ~Own() { gone++; }
};
static thread_local Own own;

template <class F> static void run(int n, F f) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < n; i++) threads.emplace_back(f, i);
}

static void latches() {
    std::latch ready(crowd), go(1), over(crowd);
    std::atomic<int> before = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < crowd; i++)
        threads.emplace_back([&, i] {
            own.values.push_back(i);
            before++;
            ready.count_down();
            go.wait();
            CHECK(before == crowd && own.values == std::vector<int>{i});
            over.arrive_and_wait();
        });
    ready.wait();
    CHECK(before == crowd && !over.try_wait());
    go.count_down();
    over.wait();
}

static void barriers() {
    int phases = 0; // the completion function's
    std::vector<int> steps(crowd);
    std::barrier meet(crowd, [&]() noexcept {
        phases++;
        for (int s : steps) CHECK(s == phases);
    });
    run(crowd, [&](int i) {
        for (int k = 1; k <= 10; k++) {
            steps[i] = k;
            meet.arrive_and_wait();
            CHECK(phases == k);
        }
    });
    CHECK(phases == 10);
}

static void semaphores() {
    std::counting_semaphore<10> slots(10);
    std::binary_semaphore turn(1);
    std::atomic<int> inside = 0, most = 0;
    long sum = 0;
    run(crowd, [&](int i) {
        for (int k = 0; k < 10; k++) {
            slots.acquire();
            int now = ++inside;
            for (int m = most; now > m && !most.compare_exchange_weak(m, now);) {}
            if (k % 5 == 0) std::this_thread::sleep_for(100us);
            --inside;
            slots.release();
            turn.acquire();
            sum += i;
            turn.release();
        }
    });
    CHECK(most <= 10 && inside == 0 && sum == 10L * crowd * (crowd - 1) / 2);
    CHECK(!std::binary_semaphore(0).try_acquire_for(2ms));
}

static void atomics() {
    std::atomic<int> turn = 0;
    std::atomic_flag door;
    std::atomic<long> wide = 0; // waits by the library's own table
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < crowd; i++)
            threads.emplace_back([&, i] {
                door.wait(false);
                for (int now; (now = turn) != i;) turn.wait(now);
                turn++;
                turn.notify_all();
                wide += i;
                wide.notify_one();
            });
        for (long sum; (sum = wide) != 0;) wide.wait(sum);
        door.test_and_set();
        door.notify_all();
        for (long sum; (sum = wide) != (long)crowd * (crowd - 1) / 2;) wide.wait(sum);
    }
    CHECK(turn == crowd);
}

static void shared() {
    std::shared_mutex lock;
    std::shared_timed_mutex timed;
    std::map<int, int> table;
    std::atomic<int> readers = 0, both = 0;
    run(crowd, [&](int i) {
        for (int k = 0; k < 20; k++) {
            if (k % 10 == i % 10) {
                std::unique_lock w(lock);
                CHECK(readers == 0);
                table[i] += k;
            } else {
                std::shared_lock r(lock);
                if (++readers > 1) both++;
                if (k == 5) std::this_thread::sleep_for(200us);
                (void)table.find(i);
                --readers;
            }
            std::unique_lock t(timed, std::defer_lock);
            if (t.try_lock_for(10s)) table.size();
        }
    });
    CHECK((int)table.size() == crowd && both > 0);
}

// A queue, whose takers are told to stop.
static void stops() {
    std::mutex lock;
    std::condition_variable_any more;
    std::queue<int> queue;
    std::atomic<long> taken = 0;
    std::atomic<int> stopped = 0, told = 0;
    {
        std::vector<std::jthread> takers;
        for (int i = 0; i < crowd; i++)
            takers.emplace_back([&](std::stop_token stop) {
                std::atomic<bool> heard = false;
                std::stop_callback note(stop, [&] {
                    told++;
                    heard = true;
                    heard.notify_one();
                });
                for (;;) {
                    std::unique_lock l(lock);
                    if (!more.wait(l, stop, [&] { return !queue.empty(); })) break;
                    taken += queue.front();
                    queue.pop();
                }
                heard.wait(false); // one that is struck off before its turn is not called
                stopped++;
            });
        for (int i = 1; i <= 1000; i++) {
            std::lock_guard l(lock);
            queue.push(i);
            more.notify_one();
        }
        for (bool empty = false; !empty; std::this_thread::yield()) {
            std::lock_guard l(lock);
            empty = queue.empty();
        }
        for (auto &t : takers) t.request_stop();
    }
    CHECK(taken == 500500 && stopped == crowd && told == crowd);
}

static void futures() {
    std::vector<std::future<long>> results;
    for (int i = 0; i < crowd; i++)
        results.push_back(std::async(std::launch::async, [i] {
            std::this_thread::sleep_for(1ms);
            if (i % 10 == 3) throw std::runtime_error(std::to_string(i));
            std::vector<long> v(1000);
            std::iota(v.begin(), v.end(), i);
            return std::accumulate(v.begin(), v.end(), 0L);
        }));
    for (int i = 0; i < crowd; i++) {
        try {
            CHECK(results[i].get() == 1000L * i + 499500 && i % 10 != 3);
        } catch (const std::runtime_error &e) { CHECK(e.what() == std::to_string(i)); }
    }
    std::promise<int> promise;
    auto answer = promise.get_future().share();
    std::atomic<int> got = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < crowd; i++) threads.emplace_back([&, answer] { got += answer.get(); });
        CHECK(answer.wait_for(1ms) == std::future_status::timeout);
        promise.set_value(2);
    }
    CHECK(got == 2 * crowd);
}

static void once() {
    std::once_flag flag;
    std::atomic<int> tries = 0, fine = 0;
    run(crowd, [&](int) {
        try {
            std::call_once(flag, [&] {
                std::this_thread::sleep_for(100us);
                if (++tries < 4) throw tries.load();
            });
            fine++;
        } catch (int n) { CHECK(n < 4); }
    });
    CHECK(tries == 4 && fine == crowd - 3);
}

static void conditions() {
    std::mutex lock;
    std::condition_variable turn;
    std::recursive_timed_mutex again;
    int next = 0;
    run(crowd, [&](int i) {
        {
            std::unique_lock l(lock);
            turn.wait(l, [&] { return next == i; });
            next++;
        }
        turn.notify_all();
        std::unique_lock a(again), b(again);
        std::unique_lock l(lock);
        CHECK(!turn.wait_for(l, 1ms, [] { return false; }));
    });
    CHECK(next == crowd);
}

static int kernel_threads() {
    char line[256];
    int n = 0;
    std::FILE *f = std::fopen("/proc/self/status", "r");
    while (f && std::fgets(line, sizeof line, f))
        if (std::sscanf(line, "Threads: %d", &n) == 1) break;
    if (f) std::fclose(f);
    return n;
}

int main(int argc, char **argv) {
    if (argc > 1) crowd = std::atoi(argv[1]);
    latches();
    barriers();
    semaphores();
    atomics();
    shared();
    stops();
    futures();
    once();
    conditions();
    CHECK(born == gone);
    std::printf("C++20: %d threads at a time, right\n", crowd);
    std::fprintf(stderr, "kernel threads: %d\n", kernel_threads());
}
