/* The room of stacks, from inside: colours, guards, promises, caches and giving back. */
#include "mem/stack.h"
#include "sched/sched.h"
#include "../lib/test.h"

#include <errno.h>
#include <unistd.h>

#define INSIDE __attribute__((noinline, no_sanitize("thread", "address")))

enum { MANY = 600, CREDITS = 12000 };

static Stack *stacks[MANY];
static int pipe_[2];

static int by_address(const void *a, const void *b) {
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

/* The kernel's word on whether a byte may be read. */
INSIDE static bool readable(const void *at) {
    char c;
    errno = 0;
    bool yes = os_write(pipe_[1], at, 1) == 1;
    if (yes) CHECK_EQ(read(pipe_[0], &c, 1), 1);
    return yes;
}

/* Takes n stacks against promises, in one section; so no other goroutine interferes. */
INSIDE static M *take(int n) {
    M *m = enter();
    for (int i = 0; i < n; i++) {
        CHECK(stack_credit_take(m));
        stacks[i] = stack_get(m);
    }
    return m;
}

INSIDE static void give_back(M *m, int n) {
    for (int i = 0; i < n; i++) {
        stack_put(m, stacks[i]);
        stack_credit_give(m);
    }
    leave(m);
}

INSIDE static void apart(void) {
    M *m = take(MANY);
    qsort(stacks, MANY, sizeof stacks[0], by_address);
    uint32_t colours = 0;
    for (int i = 0; i < MANY; i++) {
        Stack *s = stacks[i];
        CHECK_EQ(((uintptr_t)s->lo) % 4096, 0);
        CHECK_EQ(stack_span(s) + sizeof *s, STACK_USABLE);
        CHECK(s->guard == GUARD_NEAR || s->guard == GUARD_WIDE);
        CHECK((char *)stack_top(s) <= (char *)s && (uintptr_t)stack_top(s) % 64 == 0);
        /* no overlap, a guard between */
        if (i > 0) CHECK((char *)stacks[i - 1] + sizeof *s <= s->lo - s->guard);
        if (i > 0 && s->guard == stacks[i - 1]->guard)
            CHECK_EQ(((uintptr_t)s->lo - (uintptr_t)stacks[i - 1]->lo) % (STACK_USABLE + s->guard),
                     0);
        colours |= 1u << (uint32_t)(((uintptr_t)s - (uintptr_t)stack_top(s)) / 64);
        stack_check(s);
    }
    CHECK_EQ(colours, 0xffff); /* all sixteen */
    give_back(m, MANY);
}

INSIDE static void guarded(void) {
    int kind = stack_guard_kind();
    M *m = take(MANY);
    for (int i = 0; i < MANY; i++) {
        char *lo = stacks[i]->lo;
        size_t guard = stacks[i]->guard;
        CHECK(readable(lo));
        if (!stacks[i]->canary) {
            CHECK(kind != 3 || stack_guard_kind() == 3);
            CHECK(!readable(lo - 1));
            for (size_t k = 4096; k <= guard; k += guard / 7 & ~(size_t)4095)
                CHECK(!readable(lo - k));
            CHECK(!readable(lo - guard));
        }
        CHECK(stack_guard_hit(stacks[i], (uintptr_t)lo - 1));
        CHECK(stack_guard_hit(stacks[i], (uintptr_t)lo - guard));
        CHECK(!stack_guard_hit(stacks[i], (uintptr_t)lo));
        CHECK(!stack_guard_hit(stacks[i], (uintptr_t)lo - guard - 1));
    }
    give_back(m, MANY);
}

/* What is promised is mapped; what was given back can be promised again. */
INSIDE static void promises(void) {
    M *m = enter();
    for (int i = 0; i < CREDITS; i++) CHECK(stack_credit_take(m));
    uint64_t reserved = stack_reserved();
    CHECK_GE(reserved, CREDITS * STACK_STRIDE);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < CREDITS; i++) stack_credit_give(m);
        CHECK_LE(m->p->credits, 128); /* a P does not hoard */
        for (int i = 0; i < CREDITS; i++) CHECK(stack_credit_take(m));
    }
    CHECK_EQ(stack_reserved(), reserved);
    for (int i = 0; i < CREDITS; i++) stack_credit_give(m);
    leave(m);
}

/* Idle stacks lose their memory and keep their guard; the warm ones in P's cache stay. */
INSIDE static void given_back(void) {
    M *m = take(MANY);
    for (int i = 0; i < MANY; i++) *(volatile uint64_t *)(void *)(stacks[i]->lo + 4096) = 0x5555;
    give_back(m, MANY);
    m = enter();
    CHECK_GT(stack_cached(), 0);
    while (stack_scavenge() > 0) continue; /* twice: the low-water mark */
    leave(m);
    m = take(MANY);
    int warm = 0;
    for (int i = 0; i < MANY; i++) {
        warm += *(volatile uint64_t *)(void *)(stacks[i]->lo + 4096) == 0x5555;
        CHECK(stacks[i]->canary || !readable(stacks[i]->lo - 1));
        stack_check(stacks[i]);
    }
    CHECK_LE(warm, STACK_CACHE);
    CHECK_LE(m->p->nstacks, STACK_CACHE);
    qsort(stacks, MANY, sizeof stacks[0], by_address);
    for (int i = 1; i < MANY; i++) CHECK(stacks[i] != stacks[i - 1]);
    give_back(m, MANY);
}

/* The last one given back is the next one taken: its memory is warm. */
INSIDE static void last_in_first_out(void) {
    M *m = take(3);
    Stack *last = stacks[2];
    for (int i = 0; i < 3; i++) stack_put(m, stacks[i]);
    CHECK(stack_get(m) == last);
    CHECK(stack_get(m) == stacks[1]);
    CHECK(stack_get(m) == stacks[0]);
    give_back(m, 3);
}

INSIDE static uint64_t reserved_now(void) {
    M *m = enter();
    uint64_t bytes = stack_reserved();
    leave(m);
    return bytes;
}

INSIDE static void custom(void) {
    static const size_t sizes[] = {1, 16 << 10, 100000, 1 << 20, (size_t)1 << 30};
    uint64_t before = reserved_now();
    for (size_t i = 0; i < count_of(sizes); i++) {
        Stack *s = stack_custom(sizes[i]);
        CHECK(s != NULL && s->custom);
        CHECK_GE((char *)stack_top(s) - s->lo, sizes[i]);
        CHECK(readable(s->lo) && !readable(s->lo - 1) && !readable(s->lo - s->guard));
        CHECK_EQ(s->guard, sizes[i] < 256 << 10 ? GUARD_NEAR : GUARD_WIDE);
        *(volatile char *)s->lo = 1;
        CHECK_GE(reserved_now(), before + sizes[i]);
        stack_custom_free(s);
        CHECK_EQ(reserved_now(), before);
    }
}

static int body(int argc, char **argv) {
    last_in_first_out();
    apart();
    guarded();
    promises();
    given_back();
    custom();
    return 0;
}

int main(int argc, char **argv) {
    setenv("GORT_MAXPROCS", "2", 1);
    CHECK_EQ(pipe(pipe_), 0);
    return gort_main(body, argc, argv);
}
