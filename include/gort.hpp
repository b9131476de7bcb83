/*
 * gort for C++17: the calls of gort.h with closures, moves and destructors.
 *
 *     starting · goroutines · channels · select · locks · wait groups · contexts · groups
 *
 * It is a header over the C library and needs nothing else at link time. What it does not wrap
 * (descriptors, timers, signals, causes and callbacks of contexts, looking inside) is called as in
 * C: both may be mixed freely. C takes native() of a channel or context, native_handle() of a lock.
 *
 * Errors. What belongs to the normal course of a program (a channel is closed, a deadline has
 * passed, a try would block) is returned: as gort::error, one int, which compares with std::errc
 * and becomes a std::error_code; or as an empty std::optional; or as the bool that the standard's
 * lock classes expect. An exception for each closed channel would be slow, and no exception at all.
 * What a program cannot go on from (no memory, no runtime) is thrown: std::bad_alloc, or
 * std::system_error, as std::thread does. gort::check() throws for results of C calls. A program
 * built with -fno-exceptions gets a "gort: fatal:" line and an abort instead.
 *
 * Exceptions. One that leaves a goroutine ends the program by std::terminate where it was thrown,
 * and no stack is unwound: the report on stderr tells the goroutine, and the frames from the throw
 * on. One that leaves a member of a gort::group is thrown again by the group's wait().
 *
 * Destructors. gort_exit() and the end of gort_main() do not unwind stacks: objects of goroutines
 * that end so are not destroyed.
 *
 * Contexts in use (gort_ctx_use; each member of a gort::group has that of the group). One that is
 * done ends every call of its goroutine that waits and can tell the error: as a gort::error, as the
 * negative result of select, by a parameter `gort::error &why`. A receive without that is empty, a
 * range-based for is over. What has a word for a timeout only (try_lock_for, cv.wait_for) is not
 * ended: a deadline that is said to have passed has passed.
 *
 * Time. A deadline is a time point of gort::clock or of any other clock, or an int64_t as in C. The
 * names end as in the standard library: _until takes a time point, _for takes a duration.
 */
#ifndef GORT_HPP
#define GORT_HPP

#if __cplusplus < 201703L
#error "gort.hpp needs C++17: -std=c++17"
#endif

#include <gort.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

namespace gort {

/* ---- Errors -------------------------------------------------------------------------------- */

/* The result of a C call: 0, or a negative errno value. True means an error, as with
 * std::error_code. */
class error {
  public:
    constexpr error() noexcept = default;
    constexpr explicit error(int result) noexcept : result_(result < 0 ? result : 0) {}
    constexpr explicit operator bool() const noexcept { return result_ != 0; }
    constexpr int value() const noexcept { return result_; }
    constexpr bool closed() const noexcept { return result_ == -EPIPE; }
    constexpr bool timed_out() const noexcept { return result_ == -ETIMEDOUT; }
    constexpr bool would_block() const noexcept { return result_ == -EAGAIN; }
    constexpr bool cancelled() const noexcept { return result_ == -ECANCELED; }
    std::error_code code() const noexcept { return {-result_, std::generic_category()}; }
    operator std::error_code() const noexcept { return code(); }
    std::string message() const { return code().message(); }

    friend constexpr bool operator==(error a, error b) noexcept { return a.result_ == b.result_; }
    friend constexpr bool operator!=(error a, error b) noexcept { return a.result_ != b.result_; }
    friend constexpr bool operator==(error a, std::errc b) noexcept {
        return -a.result_ == static_cast<int>(b);
    }
    friend constexpr bool operator!=(error a, std::errc b) noexcept { return !(a == b); }
    friend constexpr bool operator==(std::errc a, error b) noexcept { return b == a; }
    friend constexpr bool operator!=(std::errc a, error b) noexcept { return !(b == a); }

  private:
    int result_ = 0;
};

namespace detail {

/* One write, and no lock of stdio's, which a stopped goroutine may hold. */
inline void say(const char *head, const char *text) noexcept {
    iovec line[3] = {{const_cast<char *>(head), std::char_traits<char>::length(head)},
                     {const_cast<char *>(text), std::char_traits<char>::length(text)},
                     {const_cast<char *>("\n"), 1}};
    if (::writev(2, line, 3) < 0) return;
}

/* A failure that the program cannot go on from. */
[[noreturn]] __attribute__((cold, noinline)) inline void fail(int result, const char *what) {
    std::string why(what);
    if (result == -ENOTCONN) why += ": no runtime runs (gort::main starts one)";
#ifdef __cpp_exceptions
    if (result == -ENOMEM) throw std::bad_alloc();
    throw std::system_error(-result, std::generic_category(), why);
#else
    why += ": ";
    why += error(result).message();
    say("gort: fatal: ", why.c_str());
    std::abort();
#endif
}

inline void must(int result, const char *what) {
    if (__builtin_expect(result < 0, 0)) fail(result, what);
}

/* One object in the memory of gort_alloc, which has a cache for each P. */
template <class T> class owned {
  public:
    /* what() returns the object, and so makes it in its place. */
    template <class Make> static owned make(Make what) {
        raw memory;
        T *p = ::new (memory.p) T(what());
        memory.p = nullptr;
        return owned(p);
    }
    explicit owned(void *p) noexcept : p_(static_cast<T *>(p)) {}
    owned(owned &&from) noexcept : p_(from.release()) {}
    owned &operator=(owned &&) = delete;
    ~owned() {
        if (!p_) return;
        raw memory(p_);
        p_->~T();
    }
    T &operator*() const noexcept { return *p_; }
    T *operator->() const noexcept { return p_; }
    T *address() const noexcept { return p_; }
    T *release() noexcept { return std::exchange(p_, nullptr); }

  private:
    struct raw {
        void *p;
        explicit raw(void *mine) noexcept : p(mine) {}
        raw() {
            if constexpr (alignof(T) > 16)
                p = ::operator new (sizeof(T), std::align_val_t{alignof(T)});
            else p = gort_alloc(sizeof(T));
            if (!p) fail(-ENOMEM, "gort: no memory");
        }
        raw(const raw &) = delete;
        ~raw() {
            if constexpr (alignof(T) > 16) ::operator delete (p, std::align_val_t{alignof(T)});
            else gort_free(p);
        }
    };
    T *p_;
};

/* A function and its arguments. Unlike a std::tuple it is trivially copyable where its parts
 * are. */
template <std::size_t I, class T> struct leaf { T value; };
template <class I, class... T> struct closure_of;
template <std::size_t... I, class... T>
struct closure_of<std::index_sequence<I...>, T...> : leaf<I, T>... {
    decltype(auto) operator()() { return std::invoke(std::move(leaf<I, T>::value)...); }
    template <class... More> decltype(auto) call(More &&...more) {
        return std::invoke(std::move(leaf<I, T>::value)..., std::forward<More>(more)...);
    }
};
template <class... T> using closure = closure_of<std::index_sequence_for<T...>, std::decay_t<T>...>;

/* A callable that stays where it is until a C call comes back with its address. A function has no
 * void *; the address of what lives here has one. */
template <class F> struct lent {
    std::remove_reference_t<F> *f;
    explicit lent(F &&it) noexcept : f(std::addressof(it)) {}
    template <class... A> decltype(auto) operator()(A &&...a) {
        return std::invoke(std::forward<F>(*f), std::forward<A>(a)...);
    }
};

template <class T>
inline constexpr bool fits_copy = std::is_trivially_copyable_v<T> && sizeof(T) <= 1024 &&
                                  alignof(T) <= 16;

template <class F> void run_copied(void *arg) { (*static_cast<F *>(arg))(); }
template <class F> void run_owned(void *arg) { (*owned<F>(arg))(); }

} // namespace detail

/* The result of a C call, which is thrown where it is an error: check(gort_read(fd, buf, n)). */
template <class R> R check(R result, const char *what = "gort") {
    if (__builtin_expect(result < 0, 0)) detail::fail(static_cast<int>(result), what);
    return result;
}

/* ---- Time ---------------------------------------------------------------------------------- */

/* gort_now() as a clock of std::chrono. */
struct clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return time_point(duration(gort_now())); }
};

namespace detail {

/* Rounded up, so that nothing is early; the largest and smallest values stand for never and
 * always. */
template <class R, class P>
constexpr std::int64_t nanoseconds_of(const std::chrono::duration<R, P> &d) {
    using nano = std::chrono::nanoseconds;
    if constexpr (std::is_same_v<std::chrono::duration<R, P>, nano>) {
        return d.count();
    } else {
        const double about = std::chrono::duration<double, std::nano>(d).count();
        if (about >= 9.2e18) return INT64_MAX;
        if (about <= -9.2e18) return INT64_MIN;
        return std::chrono::ceil<nano>(d).count();
    }
}

inline std::int64_t from_now(std::int64_t ns) {
    std::int64_t sum;
    return __builtin_add_overflow(gort_now(), ns, &sum) ? (ns < 0 ? INT64_MIN : GORT_FOREVER) : sum;
}

/* A time point of another clock, by its distance from now. */
template <class C, class D> std::int64_t instant_of(const std::chrono::time_point<C, D> &at) {
    if (at == std::chrono::time_point<C, D>::max()) return GORT_FOREVER;
    const auto now = C::now();
    return at <= now ? INT64_MIN : from_now(nanoseconds_of(at - now));
}

} // namespace detail

/* What the calls in _until take. A duration is none: those are for the calls in _for. */
class deadline {
  public:
    constexpr deadline(std::int64_t ns) noexcept : ns_(ns) {}
    template <class D>
    constexpr deadline(const std::chrono::time_point<clock, D> &at)
        : ns_(detail::nanoseconds_of(at.time_since_epoch())) {}
    template <class C, class D>
    deadline(const std::chrono::time_point<C, D> &at) : ns_(detail::instant_of(at)) {}
    template <class R, class P> deadline(const std::chrono::duration<R, P> &) = delete;
    constexpr std::int64_t native() const noexcept { return ns_; }

  private:
    std::int64_t ns_;
};

inline constexpr deadline forever{GORT_FOREVER};

/* The deadline that is so far from now. */
template <class R, class P> deadline from_now(const std::chrono::duration<R, P> &d) {
    return detail::from_now(detail::nanoseconds_of(d));
}

/* An error: the context in use is done, and the time is not over. */
template <class R, class P> error sleep_for(const std::chrono::duration<R, P> &d) {
    return error(gort_sleep(detail::nanoseconds_of(d)));
}
inline error sleep_until(deadline at) { return error(gort_sleep_until(at.native())); }

/* ---- Starting and goroutines --------------------------------------------------------------- */

namespace detail {

template <class Call> int status_of(Call call) {
    using R = std::decay_t<decltype(call())>;
    static_assert(std::is_void_v<R> || std::is_same_v<R, error> || std::is_same_v<R, int>,
                  "gort::main: the function returns void, an int or a gort::error");
    if constexpr (std::is_void_v<R>) return call(), 0;
    else if constexpr (std::is_same_v<R, error>) return call() ? EXIT_FAILURE : 0;
    else return call();
}

} // namespace detail

/* Starts the runtime, runs f() or f(argc, argv) as goroutine 1 and returns its int; 0 where it
 * returns void; EXIT_FAILURE where it returns a gort::error that is one, else 0. A negative result
 * that is not f's own: the runtime could not start, see gort_main. */
template <class F> int main(F &&f, int argc = 0, char **argv = nullptr) {
    static_assert(std::is_invocable_v<F> || std::is_invocable_v<F, int, char **>,
                  "gort::main: the function takes nothing, or int and char **");
    struct call {
        detail::lent<F> f;
        int argc;
        char **argv;
        int run() {
            if constexpr (std::is_invocable_v<F, int, char **>)
                return detail::status_of([this]() -> decltype(auto) { return f(argc, argv); });
            else return detail::status_of([this]() -> decltype(auto) { return f(); });
        }
    } mine{detail::lent<F>(std::forward<F>(f)), argc, argv};
    /* gort_main only hands argv on. */
    return gort_main([](int, char **it) { return reinterpret_cast<call *>(it)->run(); }, argc,
                     reinterpret_cast<char **>(&mine));
}

/* What starts a goroutine is part of its caller, without optimisation too: reports name as the
 * creator the function that the call stands in. */

/* Go's `go f(a...)`: f and the arguments are moved or copied into the goroutine, as std::thread
 * does; std::ref passes a reference. A closure of up to 1024 bytes that is trivially copyable goes
 * along with the new stack (gort_go_copy), any other takes one allocation. */
template <class F, class... A> [[gnu::always_inline]] inline void go(F &&f, A &&...a) {
    using mine = detail::closure<F, A...>;
    static_assert(std::is_invocable_v<std::decay_t<F>, std::decay_t<A>...>,
                  "gort::go: the function does not take these arguments");
    if constexpr (detail::fits_copy<mine>) {
        const mine it{{std::forward<F>(f)}, {std::forward<A>(a)}...};
        detail::must(gort_go_copy(detail::run_copied<mine>, &it, sizeof it), "gort::go");
    } else {
        auto it = detail::owned<mine>::make([&] {
            return mine{{std::forward<F>(f)}, {std::forward<A>(a)}...};
        });
        detail::must(gort_go(detail::run_owned<mine>, it.address()), "gort::go");
        it.release();
    }
}

/* As gort_attr. The name is copied (31 bytes). A stack_size of 0: the default. thread: a thread of
 * its own to libc, for code that keeps variables of its thread over a wait. */
struct attr {
    const char *name = nullptr;
    std::size_t stack_size = 0;
    bool thread = false;
};

/* The same with attributes: go_with({"reader"}, f, a...). */
template <class F, class... A>
[[gnu::always_inline]] inline void go_with(const attr &with, F &&f, A &&...a) {
    using mine = detail::closure<F, A...>;
    static_assert(std::is_invocable_v<std::decay_t<F>, std::decay_t<A>...>,
                  "gort::go_with: the function does not take these arguments");
    auto it = detail::owned<mine>::make([&] {
        return mine{{std::forward<F>(f)}, {std::forward<A>(a)}...};
    });
    gort_attr attr{};
    attr.name = with.name;
    attr.stack_size = with.stack_size;
    attr.thread = with.thread;
    detail::must(gort_go_with(&attr, detail::run_owned<mine>, it.address()), "gort::go_with");
    it.release();
}

inline void yield() { gort_yield(); }
inline std::uint64_t id() noexcept { return gort_id(); }

/* Calls f, which blocks its thread for long, and returns its value (gort_blocking). An exception
 * passes. */
template <class F> std::invoke_result_t<F> blocking(F &&f) {
    using R = std::invoke_result_t<F>;
    detail::lent<F> callee(std::forward<F>(f));
    if constexpr (std::is_void_v<R>) {
        gort_blocking([](void *it) { return (*static_cast<detail::lent<F> *>(it))(), 0L; },
                      &callee);
    } else {
        static_assert(!std::is_reference_v<R>, "gort::blocking: return a value or a pointer");
        struct call {
            detail::lent<F> *f;
            std::optional<R> result;
        } mine{&callee, std::nullopt};
        gort_blocking(
            [](void *it) {
                auto *m = static_cast<call *>(it);
                m->result.emplace((*m->f)());
                return 0L;
            },
            &mine);
        return std::move(*mine.result);
    }
}

/* ---- Channels ------------------------------------------------------------------------------ */

/*
 * chan<T> is a handle, as std::shared_ptr is one: copies are the same channel. T has to be movable.
 *
 * Who owns an element: the sender until send() has succeeded, then the channel, then the receiver.
 * A send that fails (closed, timed out, would block) leaves the sender's object as it was, also one
 * that was given by std::move. A close leaves what is in the buffer to the receivers. What nobody
 * has received is destroyed with the last handle.
 *
 * How an element travels: the C channel copies bytes. That will do where T is trivially copyable.
 * Where is_relocatable<T> says that the bytes are the object, its bytes travel, too, and the
 * sender's destructor does not run. Any other T is moved into an allocation of its own, whose
 * address travels.
 */

/* True: a T may be moved by copying its bytes and forgetting the original. It holds for every class
 * that does not keep its own address somewhere; say so by a specialisation, and the channel saves
 * an allocation for each element. */
template <class T> struct is_relocatable : std::is_trivially_copyable<T> {};
template <class T> struct is_relocatable<std::unique_ptr<T>> : std::true_type {};
template <class T> struct is_relocatable<std::shared_ptr<T>> : std::true_type {};
template <class T> struct is_relocatable<std::weak_ptr<T>> : std::true_type {};

template <class T> class chan;
template <class T> struct is_relocatable<chan<T>> : std::true_type {};

namespace detail {

/* Memory for a T, without one in it at first. */
template <class T> union room {
    room() noexcept {}
    ~room() {}
    T value;
};

/* An F && that is forwarded loses its object. */
template <class F>
inline constexpr bool moves_from =
    !std::is_lvalue_reference_v<F> && !std::is_const_v<F> && !std::is_trivially_copyable_v<F>;

/* Gives an object back to where it was moved from. */
template <class T> void give_back(T &to, T &from) noexcept {
    if constexpr (std::is_move_assignable_v<T>) {
        to = std::move(from);
    } else {
        to.~T();
        ::new (static_cast<void *>(std::addressof(to))) T(std::move(from));
    }
}

enum class travel { as_it_is, relocated, boxed };
template <class T>
inline constexpr travel travels = std::is_trivially_copyable_v<T> ? travel::as_it_is
                                  : is_relocatable<T>::value      ? travel::relocated
                                                                  : travel::boxed;

/* parcel: an element on its way into a channel. Unless sent() is called, its destructor gives a
 * moved object back. arrival: the place that a receive fills; take() empties it after a success. */
template <class T, travel = travels<T>> class parcel {
  public:
    explicit parcel(const T &v) noexcept : v_(std::addressof(v)) {}
    const void *bytes() const noexcept { return v_; }
    void sent() noexcept {}

  private:
    const T *v_;
};
template <class T> class parcel<T, travel::relocated> {
  public:
    explicit parcel(const T &v) {
        static_assert(std::is_copy_constructible_v<T>, "gort: send such an element by std::move");
        ::new (static_cast<void *>(&in_)) T(v);
    }
    explicit parcel(T &&v) : home_(std::addressof(v)) {
        ::new (static_cast<void *>(&in_)) T(std::move(v));
    }
    parcel(parcel &&) = delete;
    ~parcel() {
        if (sent_) return;
        if (home_) give_back(*home_, in_.value);
        in_.value.~T();
    }
    const void *bytes() const noexcept { return &in_; }
    void sent() noexcept { sent_ = true; }

  private:
    room<T> in_;
    T *home_ = nullptr;
    bool sent_ = false;
};
template <class T> class parcel<T, travel::boxed> {
  public:
    explicit parcel(const T &v) : box_(owned<T>::make([&] { return T(v); }).release()) {
        static_assert(std::is_copy_constructible_v<T>, "gort: send such an element by std::move");
    }
    explicit parcel(T &&v)
        : box_(owned<T>::make([&] { return T(std::move(v)); }).release()),
          home_(std::addressof(v)) {}
    parcel(parcel &&) = delete;
    ~parcel() {
        if (!box_) return;
        owned<T> mine(box_);
        if (home_) give_back(*home_, *mine);
    }
    const void *bytes() const noexcept { return &box_; }
    void sent() noexcept { box_ = nullptr; }

  private:
    T *box_;
    T *home_ = nullptr;
};

template <class T, travel = travels<T>> class arrival {
  public:
    static constexpr std::size_t size = sizeof(T);
    void *place() noexcept { return &in_; }
    std::optional<T> take() {
        struct last {
            arrival *it;
            ~last() { it->drop(); }
        } end{this};
        return std::optional<T>(std::move(in_.value));
    }
    void drop() noexcept { in_.value.~T(); }

  private:
    room<T> in_;
};
template <class T> class arrival<T, travel::boxed> {
  public:
    static constexpr std::size_t size = sizeof(T *);
    void *place() noexcept { return &box_; }
    std::optional<T> take() {
        owned<T> mine(box_);
        return std::optional<T>(std::move(*mine));
    }
    void drop() noexcept { owned<T> mine(box_); }

  private:
    T *box_ = nullptr;
};

/* The reference to a C channel. Where elements have destructors, the handles are counted here: the
 * last one empties the channel. */
template <class T, bool Destroys = travels<T> != travel::as_it_is> class handle {
  public:
    explicit handle(gort_chan *c) noexcept : c_(c) {}
    handle(const handle &from) noexcept : c_(gort_chan_retain(from.c_)) {}
    handle(handle &&from) noexcept : c_(std::exchange(from.c_, nullptr)) {}
    ~handle() { gort_chan_release(c_); }
    void swap(handle &other) noexcept { std::swap(c_, other.c_); }

  protected:
    gort_chan *c_;
};
template <class T> class handle<T, true> {
  public:
    explicit handle(gort_chan *c) : c_(c) {
        if (!c) return;
        count_ = static_cast<count *>(gort_alloc(sizeof(count)));
        if (!count_) {
            gort_chan_release(c);
            fail(-ENOMEM, "gort::chan: no memory");
        }
        ::new (static_cast<void *>(count_)) count(1);
    }
    handle(const handle &from) noexcept : c_(from.c_), count_(from.count_) {
        if (count_) count_->fetch_add(1, std::memory_order_relaxed);
    }
    handle(handle &&from) noexcept
        : c_(std::exchange(from.c_, nullptr)), count_(std::exchange(from.count_, nullptr)) {}
    ~handle() {
        /* Acquire and release: the last one sees what the others have sent. */
        if (!count_ || count_->fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        for (arrival<T> in; gort_chan_try_recv(c_, in.place()) == 0;) in.drop();
        gort_chan_release(c_);
        gort_free(count_);
    }
    void swap(handle &other) noexcept {
        std::swap(c_, other.c_);
        std::swap(count_, other.count_);
    }

  protected:
    using count = std::atomic<std::size_t>;
    gort_chan *c_;
    count *count_ = nullptr;
};

/* What every channel has, with or without elements. */
template <class T, class Element> class chan_common : public handle<Element> {
  public:
    /* Nothing more is sent. An error: it was closed already. A nil channel is misuse. */
    error close() const { return error(gort_chan_close(this->c_)); }
    std::size_t len() const { return gort_chan_len(this->c_); }
    std::size_t cap() const { return gort_chan_cap(this->c_); }
    /* False: the nil channel, which is never ready. A channel that was moved from is nil. */
    explicit operator bool() const noexcept { return this->c_ != nullptr; }
    /* The C channel, lent as long as this handle lives: for C calls that do not touch elements. */
    gort_chan *native() const noexcept { return this->c_; }

    friend bool operator==(const chan<T> &a, const chan<T> &b) noexcept {
        return a.native() == b.native();
    }
    friend bool operator!=(const chan<T> &a, const chan<T> &b) noexcept { return !(a == b); }

  protected:
    using handle<Element>::handle;
    static gort_chan *fresh(std::size_t size, std::size_t capacity) {
        gort_chan *c = gort_chan_new(size, capacity);
        if (!c) fail(-ENOMEM, "gort::chan: no memory");
        return c;
    }
};

} // namespace detail

template <class T> class chan : public detail::chan_common<T, T> {
    static_assert(std::is_object_v<T> && !std::is_const_v<T> && std::is_move_constructible_v<T>,
                  "gort::chan<T>: T has to be an object that can be moved");
    using common = detail::chan_common<T, T>;
    using parcel = detail::parcel<T>;
    using arrival = detail::arrival<T>;

  public:
    using value_type = T;

    /* A channel with room for capacity elements; 0: every send waits for its receiver. Throws
     * std::bad_alloc. */
    explicit chan(std::size_t capacity = 0) : common(common::fresh(arrival::size, capacity)) {}
    chan(const chan &) noexcept = default;
    chan(chan &&) noexcept = default;
    chan &operator=(chan from) noexcept { return this->swap(from), *this; }
    /* The channel that is never ready; in a select it switches its case off. */
    static chan nil() { return chan(adopted{nullptr}); }
    /* Takes over a reference to a C channel whose elements are Ts, such as gort_after()'s. */
    static chan adopt(gort_chan *c) {
        static_assert(std::is_trivially_copyable_v<T>,
                      "gort::chan<T>::adopt: a C channel has trivially copyable elements");
        return chan(adopted{c});
    }

    /* Blocks while there is no room. An error: closed, or the context in use is done; v is as it
     * was. */
    error send(const T &v) const {
        return out(v, [&](const void *p) { return gort_chan_send(this->c_, p); });
    }
    error send(T &&v) const {
        return out(std::move(v), [&](const void *p) { return gort_chan_send(this->c_, p); });
    }
    [[nodiscard]] error try_send(const T &v) const {
        return out(v, [&](const void *p) { return gort_chan_try_send(this->c_, p); });
    }
    [[nodiscard]] error try_send(T &&v) const {
        return out(std::move(v), [&](const void *p) { return gort_chan_try_send(this->c_, p); });
    }
    [[nodiscard]] error send_until(deadline at, const T &v) const {
        return out(v,
                   [&](const void *p) { return gort_chan_send_until(this->c_, p, at.native()); });
    }
    [[nodiscard]] error send_until(deadline at, T &&v) const {
        return out(std::move(v),
                   [&](const void *p) { return gort_chan_send_until(this->c_, p, at.native()); });
    }
    template <class R, class P, class U>
    [[nodiscard]] error send_for(const std::chrono::duration<R, P> &d, U &&v) const {
        return send_until(from_now(d), std::forward<U>(v));
    }

    /* Blocks while there is none. Empty: closed and drained, or the context in use is done; with
     * the other forms also: nothing there in time. `why` tells which. */
    std::optional<T> recv() const {
        error why;
        return recv(why);
    }
    std::optional<T> recv(error &why) const {
        return in(why, [&](void *p) { return gort_chan_recv(this->c_, p); });
    }
    [[nodiscard]] std::optional<T> try_recv() const {
        error why;
        return try_recv(why);
    }
    [[nodiscard]] std::optional<T> try_recv(error &why) const {
        return in(why, [&](void *p) { return gort_chan_try_recv(this->c_, p); });
    }
    [[nodiscard]] std::optional<T> recv_until(deadline at) const {
        error why;
        return recv_until(at, why);
    }
    [[nodiscard]] std::optional<T> recv_until(deadline at, error &why) const {
        return in(why, [&](void *p) { return gort_chan_recv_until(this->c_, p, at.native()); });
    }
    template <class R, class P>
    [[nodiscard]] std::optional<T> recv_for(const std::chrono::duration<R, P> &d) const {
        return recv_until(from_now(d));
    }
    template <class R, class P>
    [[nodiscard]] std::optional<T> recv_for(const std::chrono::duration<R, P> &d,
                                            error &why) const {
        return recv_until(from_now(d), why);
    }

    /* `for (T &v : c)` receives until the channel is closed and drained: Go's range. It also ends
     * where the context in use is done; range() tells which. */
    class iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = T *;
        using reference = T &;
        iterator() = default;
        explicit iterator(const chan *c, error *why = nullptr) : c_(c), why_(why) { ++*this; }
        T &operator*() noexcept { return *v_; }
        T *operator->() noexcept { return &*v_; }
        iterator &operator++() {
            error end;
            v_.reset();
            if (auto next = c_->recv(end)) v_.emplace(std::move(*next));
            else c_ = nullptr;
            if (why_) *why_ = end;
            return *this;
        }
        friend bool operator==(const iterator &a, const iterator &b) noexcept {
            return a.c_ == b.c_;
        }
        friend bool operator!=(const iterator &a, const iterator &b) noexcept { return !(a == b); }

      private:
        const chan *c_ = nullptr;
        error *why_ = nullptr;
        std::optional<T> v_;
    };
    iterator begin() const { return iterator(this); }
    iterator end() const { return iterator(); }

    /* `for (T &v : c.range(why))`: why tells what has ended the loop, as that of recv does; it is
     * no error after a break. */
    class telling_range {
      public:
        telling_range(const chan &c, error &why) noexcept : c_(c), why_(&why) {}
        iterator begin() const { return iterator(&c_, why_); }
        iterator end() const { return iterator(); }

      private:
        chan c_;
        error *why_;
    };
    telling_range range(error &why) const { return telling_range(*this, why); }

  private:
    struct adopted {
        gort_chan *c;
    };
    explicit chan(adopted a) : common(a.c) {}
    template <class V, class Op> error out(V &&v, Op op) const {
        parcel it(std::forward<V>(v));
        const int r = op(it.bytes());
        if (r == 0) it.sent();
        return error(r);
    }
    template <class Op> std::optional<T> in(error &why, Op op) const {
        arrival it;
        const int r = op(it.place());
        why = error(r);
        if (r < 0) return std::nullopt;
        return it.take();
    }
};

/* A channel of pure signals. A receive returns true, or false where the channel is closed or the
 * context in use is done (or, with the other forms, where nothing came in time). */
template <> class chan<void> : public detail::chan_common<void, char> {
    using common = detail::chan_common<void, char>;

  public:
    using value_type = void;

    explicit chan(std::size_t capacity = 0) : common(common::fresh(0, capacity)) {}
    chan(const chan &) noexcept = default;
    chan(chan &&) noexcept = default;
    chan &operator=(chan from) noexcept { return swap(from), *this; }
    static chan nil() { return adopt(nullptr); }
    static chan adopt(gort_chan *c) { return chan(adopted{c}); }

    error send() const { return error(gort_chan_send(c_, nullptr)); }
    [[nodiscard]] error try_send() const { return error(gort_chan_try_send(c_, nullptr)); }
    [[nodiscard]] error send_until(deadline at) const {
        return error(gort_chan_send_until(c_, nullptr, at.native()));
    }
    template <class R, class P>
    [[nodiscard]] error send_for(const std::chrono::duration<R, P> &d) const {
        return send_until(from_now(d));
    }
    bool recv() const { return gort_chan_recv(c_, nullptr) == 0; }
    bool recv(error &why) const { return !(why = error(gort_chan_recv(c_, nullptr))); }
    [[nodiscard]] bool try_recv() const { return gort_chan_try_recv(c_, nullptr) == 0; }
    [[nodiscard]] bool try_recv(error &why) const {
        return !(why = error(gort_chan_try_recv(c_, nullptr)));
    }
    [[nodiscard]] bool recv_until(deadline at) const {
        return gort_chan_recv_until(c_, nullptr, at.native()) == 0;
    }
    [[nodiscard]] bool recv_until(deadline at, error &why) const {
        return !(why = error(gort_chan_recv_until(c_, nullptr, at.native())));
    }
    template <class R, class P>
    [[nodiscard]] bool recv_for(const std::chrono::duration<R, P> &d) const {
        return recv_until(from_now(d));
    }
    template <class R, class P>
    [[nodiscard]] bool recv_for(const std::chrono::duration<R, P> &d, error &why) const {
        return recv_until(from_now(d), why);
    }

  private:
    struct adopted {
        gort_chan *c;
    };
    explicit chan(adopted a) noexcept : common(a.c) {}
};

/* A channel on which the time (of gort_now) arrives once, after d: time.After. */
template <class R, class P> chan<std::int64_t> after(const std::chrono::duration<R, P> &d) {
    gort_chan *c = gort_after(detail::nanoseconds_of(d));
    if (!c) detail::fail(gort_count() > 0 ? -ENOMEM : -ENOTCONN, "gort::after");
    return chan<std::int64_t>::adopt(c);
}

/* ---- Contexts ------------------------------------------------------------------------------ */

class context;

/* Names a value that a context carries. Its address is the key: make it a static object. */
template <class T> struct context_key { char place = 0; };

/* A context that another party owns: what functions take, and what a group gives its members. */
class context_ref {
  public:
    /* nullptr: no context, which is never cancelled. */
    constexpr context_ref(gort_ctx *c = nullptr) noexcept : c_(c) {}
    gort_ctx *native() const noexcept { return c_; }
    /* The first cause: cancelled, or timed out. */
    error err() const { return error(c_ ? gort_ctx_err(c_) : 0); }
    bool done() const { return static_cast<bool>(err()); }
    void cancel() const {
        if (c_) gort_ctx_cancel(c_);
    }
    /* Closed on cancellation. In a select, on_done() is cheaper. */
    chan<void> done_chan() const {
        return chan<void>::adopt(c_ ? gort_chan_retain(gort_ctx_done(c_)) : nullptr);
    }
    /* What the nearest context, upwards from here, has under the key; nullptr: none. */
    template <class T> T *value(const context_key<T> &key) const {
        return static_cast<T *>(c_ ? gort_ctx_value(c_, &key) : nullptr);
    }

    /* A new context below this one. */
    inline context with_cancel() const;
    inline context with_deadline(deadline at) const;
    template <class R, class P> context with_timeout(const std::chrono::duration<R, P> &d) const;
    /* The value has to outlive the new context. */
    template <class T> context with_value(const context_key<T> &key, T &value) const;

  protected:
    gort_ctx *c_;
};

/* The owner of a context: its destructor cancels it, and those below it. */
class context : public context_ref {
  public:
    context() : context(gort_ctx_new(nullptr)) {}
    /* Takes over a context of a C call. */
    explicit context(gort_ctx *c) : context_ref(c) {
        if (!c) detail::fail(-ENOMEM, "gort::context: no memory");
    }
    context(context &&from) noexcept : context_ref(std::exchange(from.c_, nullptr)) {}
    context &operator=(context &&from) noexcept {
        context old(std::move(*this), from);
        return *this;
    }
    ~context() {
        if (c_) gort_ctx_release(c_);
    }

  private:
    /* Takes what `from` has, and gives it what `next` has. */
    context(context &&from, context &next) noexcept
        : context_ref(std::exchange(from.c_, std::exchange(next.c_, nullptr))) {}
};

/*
 * A context in use, as long as this object lives: every call of the goroutine (or plain thread)
 * that waits and can report an error ends with the context's error once that is done. What was in
 * use before is in use again afterwards, so uses nest as scopes do. It belongs to the goroutine
 * that made it.
 *
 *     gort::context ctx = root.with_timeout(2s);
 *     gort::use_context in(ctx);
 *     auto v = c.recv(why);             // empty, and why.timed_out(), after two seconds
 *
 * The members of a gort::group have its context in use from the beginning.
 */
class use_context {
  public:
    /* nullptr: none is in use, as in a part that has to go to its end. */
    [[nodiscard]] explicit use_context(context_ref ctx) noexcept
        : before_(gort_ctx_use(ctx.native())) {}
    /* A temporary is gone, and cancelled, at the end of the line: give it a name. */
    explicit use_context(context &&) = delete;
    use_context(const use_context &) = delete;
    use_context &operator=(const use_context &) = delete;
    ~use_context() { gort_ctx_use(before_); }

  private:
    gort_ctx *before_;
};

inline context context_ref::with_cancel() const { return context(gort_ctx_new(c_)); }
inline context context_ref::with_deadline(deadline at) const {
    return context(gort_ctx_with_deadline(c_, at.native()));
}
template <class R, class P>
context context_ref::with_timeout(const std::chrono::duration<R, P> &d) const {
    return with_deadline(from_now(d));
}
template <class T> context context_ref::with_value(const context_key<T> &key, T &value) const {
    return context(gort_ctx_with_value(
        c_, &key, const_cast<void *>(static_cast<const void *>(std::addressof(value)))));
}

/* ---- Select -------------------------------------------------------------------------------- */

/*
 *     gort::select(on_recv(in, [&](std::optional<job> j) { ... }),
 *                  on_send(out, std::move(item), [&] { ... }),
 *                  on_done(ctx, [&] { ... }),
 *                  within(100ms, [&] { ... }));
 *
 * The cases stand in the call itself: they hold references to what they are given. One case runs,
 * then its function is called, after the select is over. The object of an on_send that did not run
 * is as it was, also in the functions of the other cases.
 */
namespace detail {

struct no_function {
    void operator()() const noexcept {}
};

/* An object that a case moves into its parcel: where it was, and for the other cases the parcel. */
struct moving {
    const void *home;
    std::size_t size;
    const void *type;
    void *parcel;
    bool is(const void *p, const void *kind) const noexcept { return home == p && type == kind; }
    bool overlaps(const void *p, std::size_t bytes) const noexcept {
        const auto a = reinterpret_cast<std::uintptr_t>(home),
                   b = reinterpret_cast<std::uintptr_t>(p);
        return size && bytes && a < b + bytes && b < a + size;
    }
};
template <class T> inline constexpr char type_mark = 0; /* its address names the type */

/* What the cases of one select move. */
struct movings {
    moving *first;
    std::size_t n = 0;
    moving *begin() const noexcept { return first; }
    moving *end() const noexcept { return first + n; }
};

/*
 * A case, and what select() does with all of them, in this order:
 *
 *   announce()  those that move an object say which
 *   copy()      the others take their copies, while every object is as it was
 *   move()      the objects are moved into parcels; cases of the same object share one
 *   enter()     fills a line of the table; then the select runs
 *   sent()      only the case that ran: its object is the channel's now
 *   settle()    what was not sent goes back to where it was
 *   run()       only the case that ran: its function
 */
struct any_case {
    static constexpr bool in_table = true, is_default = false, is_deadline = false, moves = false;
    void announce(movings &) noexcept {}
    void copy(const movings &) noexcept {}
    void move(const movings &) noexcept {}
    void sent() noexcept {}
    void settle() noexcept {}
};
struct channel_case : any_case {};
struct other_case : any_case {
    static constexpr bool in_table = false;
    void enter(gort_case *) noexcept {}
};

template <class T, class F> struct recv_case : channel_case {
    static_assert(std::is_invocable_v<F, std::optional<T>>,
                  "gort::on_recv: the function has to take a std::optional<T>");
    gort_chan *c;
    F f;
    arrival<T> it;
    recv_case(gort_chan *ch, F &&fn) : c(ch), f(std::forward<F>(fn)) {}
    void enter(gort_case *line) noexcept { *line = {GORT_RECV, c, it.place(), 0}; }
    void run(int result) {
        std::invoke(std::forward<F>(f), result == 0 ? it.take() : std::optional<T>());
    }
};
template <class F> struct recv_case<void, F> : channel_case {
    static_assert(std::is_invocable_v<F, bool> || std::is_invocable_v<F>,
                  "gort::on_recv: the function has to take a bool, or nothing");
    gort_chan *c;
    F f;
    recv_case(gort_chan *ch, F &&fn) : c(ch), f(std::forward<F>(fn)) {}
    void enter(gort_case *line) noexcept { *line = {GORT_RECV, c, nullptr, 0}; }
    void run(int result) {
        if constexpr (std::is_invocable_v<F, bool>) std::invoke(std::forward<F>(f), result == 0);
        else std::invoke(std::forward<F>(f)), static_cast<void>(result);
    }
};

/* A function that takes no gort::error cannot hear that the channel is closed: that is thrown. */
template <class F> void run_send(F &&f, int result) {
    static_assert(std::is_invocable_v<F, error> || std::is_invocable_v<F>,
                  "gort::on_send: the function has to take a gort::error, or nothing");
    if constexpr (std::is_invocable_v<F, error>) {
        std::invoke(std::forward<F>(f), error(result));
    } else {
        must(result, "gort::select: send on a closed channel");
        std::invoke(std::forward<F>(f));
    }
}
/* V: const T & or T &&. */
template <class T, class V, class F, travel = travels<T>> struct send_case : channel_case {
    static constexpr bool moves = std::is_rvalue_reference_v<V>;
    gort_chan *c;
    V v;
    F f;
    std::optional<parcel<T>> own;
    parcel<T> *it = nullptr; /* own, or that of an earlier case that moves the same object */
    send_case(gort_chan *ch, V value, F &&fn)
        : c(ch), v(static_cast<V>(value)), f(std::forward<F>(fn)) {}
    void announce(movings &all) noexcept {
        if constexpr (moves)
            if (c) all.first[all.n++] = {std::addressof(v), extent, &type_mark<T>, nullptr};
    }
    void copy(const movings &) {
        if constexpr (!moves)
            if (c) it = &own.emplace(v);
    }
    void move(const movings &all) {
        if constexpr (moves)
            if (c) it = shared(all);
    }
    void enter(gort_case *line) noexcept {
        *line = {GORT_SEND, c, it ? const_cast<void *>(it->bytes()) : nullptr, 0};
    }
    void sent() noexcept { it->sent(); }
    void settle() noexcept { own.reset(); }
    void run(int result) { run_send(std::forward<F>(f), result); }

  private:
    static constexpr std::size_t extent = std::is_empty_v<T> ? 0 : sizeof(T);
    parcel<T> *shared(const movings &all) {
        moving *mine = nullptr;
        for (moving &one : all) {
            if (one.is(std::addressof(v), &type_mark<T>)) mine = mine ? mine : &one;
            else if (one.overlaps(std::addressof(v), extent))
                fail(-EINVAL, "gort::select: one case moves an object, another a part of it");
        }
        if (!mine->parcel) mine->parcel = &own.emplace(static_cast<V>(v));
        return static_cast<parcel<T> *>(mine->parcel);
    }
};
/* Bytes are sent from where they are, unless another case moves what they are part of. */
template <class T, class V, class F> struct send_case<T, V, F, travel::as_it_is> : channel_case {
    struct alignas(T) image {
        unsigned char bytes[sizeof(T)];
    };
    gort_chan *c;
    const void *bytes;
    F f;
    std::optional<owned<image>> own;
    send_case(gort_chan *ch, const T &v, F &&fn)
        : c(ch), bytes(std::addressof(v)), f(std::forward<F>(fn)) {}
    void copy(const movings &all) {
        for (const moving &one : all)
            if (!own && c && one.overlaps(bytes, sizeof(T))) take_copy();
    }
    void enter(gort_case *line) noexcept { *line = {GORT_SEND, c, const_cast<void *>(bytes), 0}; }
    void run(int result) { run_send(std::forward<F>(f), result); }

  private:
    void take_copy() {
        own.emplace(owned<image>::make([] { return image(); }));
        bytes = std::memcpy((*own)->bytes, bytes, sizeof(T));
    }
};
template <class F> struct signal_case : channel_case {
    gort_chan *c;
    F f;
    signal_case(gort_chan *ch, F &&fn) : c(ch), f(std::forward<F>(fn)) {}
    void enter(gort_case *line) noexcept { *line = {GORT_SEND, c, nullptr, 0}; }
    void run(int result) { run_send(std::forward<F>(f), result); }
};

template <class F> struct default_case : other_case {
    static_assert(std::is_invocable_v<F>, "gort::on_default: the function takes nothing");
    static constexpr bool is_default = true;
    F f;
    explicit default_case(F &&fn) : f(std::forward<F>(fn)) {}
    void run(int) { std::invoke(std::forward<F>(f)); }
};
template <class F> struct deadline_case : other_case {
    static_assert(std::is_invocable_v<F>, "gort::until, gort::within: the function takes nothing");
    static constexpr bool is_deadline = true;
    deadline at;
    F f;
    deadline_case(deadline when, F &&fn) : at(when), f(std::forward<F>(fn)) {}
    void run(int) { std::invoke(std::forward<F>(f)); }
};

template <class C> std::int64_t deadline_of(const C &one) {
    if constexpr (C::is_deadline) return one.at.native();
    else return static_cast<void>(one), GORT_FOREVER;
}

} // namespace detail

/* f gets the element, or an empty optional where the channel is closed. */
template <class T, class F> [[nodiscard]] detail::recv_case<T, F> on_recv(const chan<T> &c, F &&f) {
    return {c.native(), std::forward<F>(f)};
}
/* v is moved from only if this case runs. f gets a gort::error, which tells that the channel is
 * closed; one that takes nothing makes select throw then. */
template <class T, class F = detail::no_function>
[[nodiscard]] detail::send_case<T, T &&, F> on_send(const chan<T> &c, std::common_type_t<T> &&v,
                                                    F &&f = F()) {
    return {c.native(), std::move(v), std::forward<F>(f)};
}
template <class T, class F = detail::no_function>
[[nodiscard]] detail::send_case<T, const T &, F> on_send(const chan<T> &c,
                                                         const std::common_type_t<T> &v,
                                                         F &&f = F()) {
    return {c.native(), v, std::forward<F>(f)};
}
template <class F = detail::no_function>
[[nodiscard]] detail::signal_case<F> on_send(const chan<void> &c, F &&f = F()) {
    return {c.native(), std::forward<F>(f)};
}
/* Runs when the context is done. */
template <class F> [[nodiscard]] detail::recv_case<void, F> on_done(const context_ref &ctx, F &&f) {
    return {ctx.native() ? gort_ctx_done(ctx.native()) : nullptr, std::forward<F>(f)};
}
/* Runs where no other case is ready; the select never blocks then. */
template <class F = detail::no_function>
[[nodiscard]] detail::default_case<F> on_default(F &&f = F()) {
    return detail::default_case<F>(std::forward<F>(f));
}
/* Runs where no other case has become ready until then. That the context in use is done is no
 * passed deadline: select returns the error, and no case runs. */
template <class F = detail::no_function>
[[nodiscard]] detail::deadline_case<F> until(deadline at, F &&f = F()) {
    return {at, std::forward<F>(f)};
}
template <class R, class P, class F = detail::no_function>
[[nodiscard]] detail::deadline_case<F> within(const std::chrono::duration<R, P> &d, F &&f = F()) {
    return {from_now(d), std::forward<F>(f)};
}

/* Runs one case and returns its place in the list, from 0. Of several that are ready, one is chosen
 * at random. Blocks while none is. A negative result: no case has run, for the context in use is
 * done (-ECANCELED, -ETIMEDOUT). The same object may stand in several cases, moved or copied: one
 * of them sends it. Throws std::system_error where one case moves an object, another a part of
 * it. */
template <class... C> int select(C &&...cases) {
    static_assert((!std::is_lvalue_reference_v<C> && ...),
                  "gort::select: the cases have to stand in the call");
    constexpr int n = (0 + ... + (C::in_table ? 1 : 0));
    constexpr int defaults = (0 + ... + (C::is_default ? 1 : 0));
    constexpr int deadlines = (0 + ... + (C::is_deadline ? 1 : 0));
    static_assert(defaults + deadlines <= 1, "gort::select: one default or one deadline");
    gort_case table[n > 0 ? std::size_t{n} : 1];
    constexpr int n_moves = (0 + ... + (C::moves ? 1 : 0));
    detail::moving room[n_moves > 0 ? std::size_t{n_moves} : 1];
    detail::movings moves{room};
    (cases.announce(moves), ...);
    (cases.copy(moves), ...);
    (cases.move(moves), ...);
    int line = 0;
    ((cases.enter(&table[line]), line += C::in_table), ...);

    int ran = -EINVAL;
    bool passed = false; /* the deadline */
    if constexpr (defaults == 1) {
        ran = gort_try_select(table, n);
    } else if constexpr (deadlines == 1) {
        std::int64_t at = GORT_FOREVER;
        ((C::is_deadline ? void(at = detail::deadline_of(cases)) : void()), ...);
        ran = gort_select_until(table, n, at);
        passed = ran == -ETIMEDOUT && gort_now() >= at; /* else it is the context's */
    } else {
        ran = gort_select(table, n);
    }
    const int result = ran >= 0 ? table[ran].result : 0;
    line = 0;
    ((C::in_table && line++ == ran && result == 0 ? cases.sent() : void()), ...);
    (cases.settle(), ...);

    int place = 0, found = ran;
    line = 0;
    [[maybe_unused]] const auto visit = [&](auto &one) {
        using kind = std::remove_reference_t<decltype(one)>;
        const int here = place++;
        bool mine = false;
        if constexpr (kind::in_table) mine = line++ == ran;
        else mine = kind::is_default ? ran == -EAGAIN : passed;
        if (!mine) return;
        found = here;
        one.run(result);
    };
    (visit(cases), ...);
    return found;
}

/* ---- Locks --------------------------------------------------------------------------------- */

/*
 * Timed waits. The names of the standard return true or false, timeout or no timeout: they have no
 * word for a context in use that is done, and are not ended by it, like the calls that return
 * nothing. Those with a gort::error & are ended; it is no error, or tells why the wait has failed.
 */
namespace detail {

/* No context is in use while it lives. */
class unused_context {
  public:
    unused_context() : used_(gort_ctx_used()) {
        if (!used_) return;
        child_ = gort_ctx_new(used_); /* keeps the other alive */
        if (!child_) fail(-ENOMEM, "gort: no memory");
        gort_ctx_use(nullptr);
    }
    unused_context(const unused_context &) = delete;
    unused_context &operator=(const unused_context &) = delete;
    ~unused_context() {
        if (!used_) return;
        gort_ctx_use(used_);
        gort_ctx_release(child_);
    }

  private:
    gort_ctx *used_, *child_ = nullptr;
};

/* True: the call has succeeded. */
template <class Call> bool timed(Call call) {
    const unused_context none;
    return call() == 0;
}
template <class Call> bool timed(Call call, error &why) { return !(why = error(call())); }

} // namespace detail

/* For std::lock_guard, std::unique_lock and std::scoped_lock (TimedLockable). A lock of the
 * standard library blocks the thread, one of these the goroutine; so keep a std::mutex only around
 * what does not block. */
class mutex {
  public:
    constexpr mutex() noexcept = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    void lock() { gort_mutex_lock(&m_); }
    [[nodiscard]] bool try_lock() { return gort_mutex_try_lock(&m_) == 0; }
    [[nodiscard]] bool try_lock_until(deadline at) {
        return try_lock() || detail::timed([&] { return gort_mutex_lock_until(&m_, at.native()); });
    }
    [[nodiscard]] bool try_lock_until(deadline at, error &why) {
        return detail::timed([&] { return gort_mutex_lock_until(&m_, at.native()); }, why);
    }
    template <class R, class P, class... Why>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<R, P> &d, Why &...why) {
        return try_lock_until(from_now(d), why...);
    }
    void unlock() { gort_mutex_unlock(&m_); }
    using native_handle_type = gort_mutex *;
    gort_mutex *native_handle() noexcept { return &m_; }

  private:
    gort_mutex m_{};
};

/* Many readers or one writer: for std::shared_lock, too (SharedTimedLockable). */
class shared_mutex {
  public:
    constexpr shared_mutex() noexcept = default;
    shared_mutex(const shared_mutex &) = delete;
    shared_mutex &operator=(const shared_mutex &) = delete;
    void lock() { gort_rwmutex_lock(&m_); }
    [[nodiscard]] bool try_lock() { return gort_rwmutex_try_lock(&m_) == 0; }
    [[nodiscard]] bool try_lock_until(deadline at) {
        return try_lock() ||
               detail::timed([&] { return gort_rwmutex_lock_until(&m_, at.native()); });
    }
    [[nodiscard]] bool try_lock_until(deadline at, error &why) {
        return detail::timed([&] { return gort_rwmutex_lock_until(&m_, at.native()); }, why);
    }
    template <class R, class P, class... Why>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<R, P> &d, Why &...why) {
        return try_lock_until(from_now(d), why...);
    }
    void unlock() { gort_rwmutex_unlock(&m_); }
    void lock_shared() { gort_rwmutex_rlock(&m_); }
    [[nodiscard]] bool try_lock_shared() { return gort_rwmutex_try_rlock(&m_) == 0; }
    [[nodiscard]] bool try_lock_shared_until(deadline at) {
        return try_lock_shared() ||
               detail::timed([&] { return gort_rwmutex_rlock_until(&m_, at.native()); });
    }
    [[nodiscard]] bool try_lock_shared_until(deadline at, error &why) {
        return detail::timed([&] { return gort_rwmutex_rlock_until(&m_, at.native()); }, why);
    }
    template <class R, class P, class... Why>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<R, P> &d, Why &...why) {
        return try_lock_shared_until(from_now(d), why...);
    }
    void unlock_shared() { gort_rwmutex_runlock(&m_); }
    using native_handle_type = gort_rwmutex *;
    gort_rwmutex *native_handle() noexcept { return &m_; }

  private:
    gort_rwmutex m_{};
};

/* std::condition_variable for a std::unique_lock<gort::mutex>. It never wakes without a signal. */
class condition_variable {
  public:
    constexpr condition_variable() noexcept = default;
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;
    void notify_one() { gort_cond_signal(&c_); }
    void notify_all() { gort_cond_broadcast(&c_); }
    void wait(std::unique_lock<mutex> &lock) { gort_cond_wait(&c_, lock.mutex()->native_handle()); }
    template <class Pred> void wait(std::unique_lock<mutex> &lock, Pred pred) {
        while (!pred()) wait(lock);
    }
    std::cv_status wait_until(std::unique_lock<mutex> &lock, deadline at) {
        return status(detail::timed([&] { return in_time(lock, at); }));
    }
    std::cv_status wait_until(std::unique_lock<mutex> &lock, deadline at, error &why) {
        return status(detail::timed([&] { return in_time(lock, at); }, why));
    }
    template <class Pred> bool wait_until(std::unique_lock<mutex> &lock, deadline at, Pred pred) {
        while (!pred())
            if (wait_until(lock, at) == std::cv_status::timeout) return pred();
        return true;
    }
    /* Where it returns true, why is no error. */
    template <class Pred>
    bool wait_until(std::unique_lock<mutex> &lock, deadline at, error &why, Pred pred) {
        for (why = error(); !pred();)
            if (wait_until(lock, at, why) == std::cv_status::timeout) {
                const bool late = pred();
                if (late) why = error();
                return late;
            }
        return true;
    }
    /* wait_for(lock, d), wait_for(lock, d, pred) and with the error in between. */
    template <class R, class P, class... More>
    auto wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<R, P> &d,
                  More &&...more) {
        return wait_until(lock, from_now(d), std::forward<More>(more)...);
    }

  private:
    int in_time(std::unique_lock<mutex> &lock, deadline at) {
        return gort_cond_wait_until(&c_, lock.mutex()->native_handle(), at.native());
    }
    static std::cv_status status(bool signalled) {
        return signalled ? std::cv_status::no_timeout : std::cv_status::timeout;
    }
    gort_cond c_{};
};

/* Permits, first come first served. */
class semaphore {
  public:
    explicit semaphore(std::int64_t permits) {
        if (permits > 0) gort_sem_release(&s_, permits);
    }
    semaphore(const semaphore &) = delete;
    semaphore &operator=(const semaphore &) = delete;
    void acquire(std::int64_t n = 1) { gort_sem_acquire(&s_, n); }
    [[nodiscard]] bool try_acquire(std::int64_t n = 1) { return gort_sem_try_acquire(&s_, n) == 0; }
    [[nodiscard]] bool try_acquire_until(deadline at, std::int64_t n = 1) {
        return try_acquire(n) ||
               detail::timed([&] { return gort_sem_acquire_until(&s_, n, at.native()); });
    }
    [[nodiscard]] bool try_acquire_until(deadline at, error &why, std::int64_t n = 1) {
        return detail::timed([&] { return gort_sem_acquire_until(&s_, n, at.native()); }, why);
    }
    template <class R, class P>
    [[nodiscard]] bool try_acquire_for(const std::chrono::duration<R, P> &d, std::int64_t n = 1) {
        return try_acquire_until(from_now(d), n);
    }
    template <class R, class P>
    [[nodiscard]] bool try_acquire_for(const std::chrono::duration<R, P> &d, error &why,
                                       std::int64_t n = 1) {
        return try_acquire_until(from_now(d), why, n);
    }
    void release(std::int64_t n = 1) { gort_sem_release(&s_, n); }

  private:
    gort_sem s_{};
};

/* What is done once. As in Go, a function that an exception has left counts as done. */
class once {
  public:
    constexpr once() noexcept = default;
    once(const once &) = delete;
    once &operator=(const once &) = delete;
    template <class F> void call(F &&f) {
        static_assert(std::is_invocable_v<F>, "gort::once: the function takes nothing");
        detail::lent<F> callee(std::forward<F>(f));
        gort_once_do(
            &o_, [](void *it) { static_cast<void>((*static_cast<detail::lent<F> *>(it))()); },
            &callee);
    }

  private:
    gort_once o_{};
};

/* ---- Wait groups and groups ---------------------------------------------------------------- */

/* Goroutines that are waited for. It has to outlive them: wait() before it goes out of scope. */
class wait_group {
  public:
    constexpr wait_group() noexcept = default;
    wait_group(const wait_group &) = delete;
    wait_group &operator=(const wait_group &) = delete;
    void add(int n = 1) { gort_wg_add(&wg_, n); }
    void done() { gort_wg_done(&wg_); }
    void wait() { gort_wg_wait(&wg_); }
    /* False: the deadline has passed; with an error, which tells so, also where the context in use
     * is done. */
    [[nodiscard]] bool wait_until(deadline at) {
        return gort_wg_wait_until(&wg_, INT64_MIN) == 0 ||
               detail::timed([&] { return gort_wg_wait_until(&wg_, at.native()); });
    }
    [[nodiscard]] bool wait_until(deadline at, error &why) {
        return detail::timed([&] { return gort_wg_wait_until(&wg_, at.native()); }, why);
    }
    template <class R, class P, class... Why>
    [[nodiscard]] bool wait_for(const std::chrono::duration<R, P> &d, Why &...why) {
        return wait_until(from_now(d), why...);
    }
    /* As gort::go, counted. */
    template <class F, class... A> [[gnu::always_inline]] inline void go(F &&f, A &&...a) {
        using mine = detail::closure<F, A...>;
        static_assert(std::is_invocable_v<std::decay_t<F>, std::decay_t<A>...>,
                      "gort::wait_group::go: the function does not take these arguments");
        auto it = detail::owned<mine>::make([&] {
            return mine{{std::forward<F>(f)}, {std::forward<A>(a)}...};
        });
        detail::must(gort_wg_go(&wg_, detail::run_owned<mine>, it.address()),
                     "gort::wait_group::go");
        it.release();
    }

  private:
    gort_wg wg_{};
};

/* Goroutines that work on one thing: the first failure, an error or an exception, cancels the
 * context of the others. The destructor of a group that was not waited for cancels it and waits, as
 * that of std::jthread does. */
class group {
  public:
    /* At most limit members run at once; 0: any number. */
    explicit group(context_ref parent = {}, int limit = 0) : own_(parent.with_cancel()) {
        g_ = gort_group_new(own_.native(), limit);
        if (!g_) detail::fail(-ENOMEM, "gort::group: no memory");
    }
    explicit group(int limit) : group(context_ref(), limit) {}
    /* A temporary is gone, and cancelled, at the end of the line: give it a name. */
    explicit group(context &&, int = 0) = delete;
    group(const group &) = delete;
    group &operator=(const group &) = delete;
    ~group() {
        if (!g_) return;
        own_.cancel();
        static_cast<void>(gort_group_wait(g_));
#ifdef __cpp_exceptions
        /* An exception on its way tells of the failure; otherwise this one must not get lost: it
         * ends the program, since a destructor lets none out. */
        if (first_ && std::uncaught_exceptions() == uncaught_) std::rethrow_exception(first_);
#endif
    }

    /* Starts f(context_ref) or f(), which returns void, an int or a gort::error; a negative result
     * is a failure. Blocks while limit members run. */
    template <class F> [[gnu::always_inline]] inline void go(F &&f) {
        start(std::forward<F>(f), gort_group_go, "gort::group::go");
    }
    /* False: limit members run, and f is as it was, also one that was given by std::move. */
    template <class F> [[nodiscard, gnu::always_inline]] inline bool try_go(F &&f) {
        return start(std::forward<F>(f), gort_group_try_go, "gort::group::try_go");
    }
    void cancel() const { own_.cancel(); }
    /* Blocks until all have ended, once. Throws the exception that came first, or returns the
     * first error. */
    error wait() {
        const int result = g_ ? gort_group_wait(std::exchange(g_, nullptr)) : 0;
#ifdef __cpp_exceptions
        if (first_) std::rethrow_exception(std::exchange(first_, nullptr));
#endif
        return error(result);
    }

  private:
    template <class F> struct member {
        group *g;
        F f;
        int run(gort_ctx *ctx) {
            if constexpr (std::is_invocable_v<F, context_ref>)
                return result_of([&]() -> decltype(auto) {
                    return std::invoke(std::move(f), context_ref(ctx));
                });
            else return result_of([&]() -> decltype(auto) { return std::invoke(std::move(f)); });
        }
        template <class Call> static int result_of(Call call) {
            using R = decltype(call());
            static_assert(std::is_void_v<R> || std::is_same_v<R, error> || std::is_same_v<R, int>,
                          "gort::group: a member returns void, an int or a gort::error");
            if constexpr (std::is_void_v<R>) return call(), 0;
            else if constexpr (std::is_same_v<R, error>) return call().value();
            else return call();
        }
    };
    template <class M> static int run(gort_ctx *ctx, void *arg) {
        detail::owned<M> it(arg);
#ifdef __cpp_exceptions
        group *g = it->g;
        try {
            return detail::owned<M>(std::move(it))->run(ctx);
        }
#ifdef __GLIBCXX__
        catch (abi::__forced_unwind &) {
            throw;
        }
#endif
        catch (...) {
            if (!g->thrown_.exchange(true)) g->first_ = std::current_exception();
            return -ECANCELED;
        }
#else
        return it->run(ctx);
#endif
    }
    template <class F, class Go>
    [[gnu::always_inline]] inline bool start(F &&f, Go how, const char *what) {
        using mine = member<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F>, context_ref> ||
                          std::is_invocable_v<std::decay_t<F>>,
                      "gort::group: a member takes a gort::context_ref, or nothing");
        if (!g_) detail::fail(-EINVAL, "gort::group: go() after wait()");
        auto it = detail::owned<mine>::make([&] { return mine{this, std::forward<F>(f)}; });
        const int r = how(g_, run<mine>, it.address());
        if constexpr (std::is_same_v<F, std::decay_t<F>>) /* moved from */
            if (r < 0) detail::give_back(f, it->f);
        if (r == -EAGAIN) return false;
        detail::must(r, what);
        it.release();
        return true;
    }

    context own_;
    gort_group *g_ = nullptr;
#ifdef __cpp_exceptions
    std::atomic<bool> thrown_{false};
    std::exception_ptr first_; /* written by whoever set thrown_; gort_group_wait orders it */
    int uncaught_ = std::uncaught_exceptions();
#endif
};

} // namespace gort

#endif
