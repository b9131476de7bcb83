// What C++ has of threads: thread_local objects are destroyed in reverse order of their making, by
// their own thread, before values under keys; main's and static ones by exit, in order;
// std::thread, async, exceptions that wait and pass threads; destructors that wait, and make
// objects.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define CHECK(x)                                                    \
    do {                                                            \
        if (!(x)) {                                                 \
            std::fprintf(stderr, "%d: not so: %s\n", __LINE__, #x); \
            std::abort();                                           \
        }                                                           \
    } while (0)

static std::atomic<int> made, gone;
static pthread_key_t key;
static thread_local std::string *order;

struct Object {
    char name;
    pthread_t by;
    explicit Object(char n) : name(n), by(pthread_self()) { made++; }
    ~Object() {
        CHECK(pthread_equal(by, pthread_self()));
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        if (order) *order += name;
        gone++;
    }
};
// Made where they are first used, one by one.
static Object &a() {
    static thread_local Object object('a');
    return object;
}
static Object &b() {
    static thread_local Object object('b');
    return object;
}

struct Late { // its destructor makes an object
    ~Late() { CHECK(a().name == 'a'); }
};

static void at_key(void *value) {
    auto *text = static_cast<std::string *>(value);
    CHECK(*text == "ba" || *text == "ab");
    delete text;
    gone++;
}

static void life(int number) {
    std::string *text = new std::string;
    order = text;
    CHECK(pthread_setspecific(key, text) == 0);
    char first = number % 2 ? a().name : b().name;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    char second = number % 2 ? b().name : a().name;
    CHECK(first == (number % 2 ? 'a' : 'b') && second == (number % 2 ? 'b' : 'a'));
    try {
        try {
            throw std::runtime_error("one");
        } catch (const std::exception &e) {
            std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::microseconds(10));
            CHECK(e.what() == std::string("one"));
            throw std::logic_error("two");
        }
    } catch (const std::logic_error &e) { CHECK(e.what() == std::string("two")); }
}

static void only_late() {
    static thread_local Late late;
    (void)&late;
}

struct Static {
    const char *text;
    explicit Static(const char *t) : text(t) {}
    ~Static() { std::fputs(text, stdout); }
};
static Static one("one\n"), two("two ");

struct Mains {
    ~Mains() { std::fputs("mains ", stdout); }
};

// A thread that begins in a constructor, before main.
static std::atomic<int> early;
static std::thread before_main([] { early = 1; });

int main() {
    static thread_local Mains mains;
    (void)&mains;
    before_main.join();
    CHECK(early == 1);
    CHECK(pthread_key_create(&key, at_key) == 0);
    for (int round = 0; round < 5; round++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 40; i++) threads.emplace_back(life, i);
        for (auto &t : threads) t.join();
        CHECK(made == 80 * (round + 1) && gone == 120 * (round + 1));
    }
    std::thread(only_late).join();
    CHECK(made == 401 && gone == 601);
    auto failing = std::async(std::launch::async, []() -> int { throw std::runtime_error("far"); });
    try {
        failing.get();
        CHECK(false);
    } catch (const std::runtime_error &e) { CHECK(e.what() == std::string("far")); }
    std::once_flag once;
    std::atomic<int> times{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 20; i++)
        threads.emplace_back([&] {
            std::call_once(once, [&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                times++;
            });
            CHECK(times == 1);
        });
    for (auto &t : threads) t.join();
    return 0;
}
