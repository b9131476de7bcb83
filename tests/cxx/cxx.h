/* What the tests of gort.hpp share. The short names of test.h would meet those of the C++
 * library. */
#ifndef GORT_CXX_H
#define GORT_CXX_H

#include <gort.hpp>

#include <any>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../lib/test.h"
#undef get
#undef wait_until
#undef set
#undef add

/* As wait_until of test.h. */
#define EVENTUALLY(cond)                                                 \
    do {                                                                 \
        for (unsigned round_ = 0; !(cond); round_++) test_pause(round_); \
    } while (0)

using namespace std::chrono_literals;

/* Waits until all goroutines but the caller have ended, and with them their closures: what is left
 * then is a leak. */
inline void all_ended() { EVENTUALLY(gort_count() == 1); }

/* Counts those that live, and keeps its own address: bytes that were copied are found out. */
class counted {
  public:
    static inline std::atomic<int> alive{0};
    explicit counted(int number) : n(number), self_(this) { alive++; }
    counted(const counted &from) : n(from.n), self_(this) {
        from.check();
        alive++;
    }
    counted(counted &&from) noexcept : n(std::exchange(from.n, -1)), self_(this) {
        from.check();
        alive++;
    }
    counted &operator=(counted &&from) noexcept {
        check(), from.check();
        n = std::exchange(from.n, -1);
        return *this;
    }
    ~counted() {
        check();
        self_ = nullptr;
        alive--;
    }
    void check() const { CHECK(self_ == this); }
    int n; /* -1: moved from */

  private:
    counted *self_;
};

#endif
