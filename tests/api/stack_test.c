/* Stacks: the room that is promised, sizes that are asked for, alignment, and no overlap. */
#include "../lib/test.h"

#define KB 1024
static int finished;

/* Touches every page of a frame of the given size and reads it back. */
static __attribute__((noinline)) void use(size_t size) {
    volatile char *room = __builtin_alloca(size);
    for (size_t i = 0; i < size; i += 512) room[i] = (char)(i >> 9);
    room[size - 1] = 1;
    for (size_t i = 0; i + 1 < size; i += 512) CHECK_EQ(room[i], (char)(i >> 9));
}

static void use_it(void *arg) {
    use((size_t)(uintptr_t)arg);
    add(&finished, 1);
}

static __attribute__((noinline)) int recurse(int depth) {
    volatile char frame[KB];
    frame[depth % KB] = (char)depth;
    return depth == 0 ? frame[0] : recurse(depth - 1) + (frame[depth % KB] == (char)depth);
}

static void deep(void *arg) {
    CHECK_EQ(recurse(120), 120); /* 1 KB of locals and what the compiler adds */
    add(&finished, 1);
}

static void aligned(void *arg) {
    _Alignas(16) volatile char here[16];
    CHECK_EQ((uintptr_t)__builtin_frame_address(0) % 16, 0);
    CHECK_EQ((uintptr_t)here % 16, 0);
    char text[64];
    snprintf(text, sizeof text, "%.3f %.3Lf", 1.5, 2.25L); /* libc saves SSE registers, aligned */
    CHECK_STR(text, "1.500 2.250");
    add(&finished, 1);
}

static void keeps_its_own(void *arg) {
    volatile uintptr_t mine[2000];
    for (int i = 0; i < 2000; i++) mine[i] = (uintptr_t)arg + (uintptr_t)i;
    for (int k = 0; k < 5; k++) gort_yield();
    for (int i = 0; i < 2000; i++) CHECK_EQ(mine[i], (uintptr_t)arg + (uintptr_t)i);
    add(&finished, 1);
}

static void run_with(size_t stack_size, size_t used) {
    int before = get(&finished);
    CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = stack_size}, use_it, (void *)used), 0);
    wait_until(get(&finished) == before + 1);
}

static void sizes(void) {
    static const size_t invalid[] = {((size_t)1 << 30) + 1, (size_t)1 << 40, SIZE_MAX,
                                     SIZE_MAX - 4095};
    run_with(0, 200 * KB);
    run_with(1, 8 * KB); /* counts as 16 KB */
    run_with(16 * KB, 8 * KB);
    run_with(17 * KB + 1, 9 * KB);
    run_with(100000, 80000);
    run_with(4096 * KB, 4000 * KB);
    run_with(64 * 1024 * KB, 60 * 1024 * KB);
    run_with((size_t)1 << 30, 1024 * KB);
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = invalid[i]}, use_it, NULL), -EINVAL);
}

static int body(int argc, char **argv) {
    use(1024 * KB); /* the main goroutine's: 1 MB */
    sizes();
    set(&finished, 0);
    for (int i = 0; i < 200; i++) CHECK_EQ(gort_go(deep, NULL), 0);
    for (int i = 0; i < 50; i++) CHECK_EQ(gort_go(aligned, NULL), 0);
    for (uintptr_t i = 0; i < 500; i++) CHECK_EQ(gort_go(keeps_its_own, (void *)(i << 20)), 0);
    wait_until(get(&finished) == 750);
    wait_until(gort_count() == 1);
    /* reused, never mixed up */
    for (int i = 0; i < 2000; i++) run_with((size_t)(i % 7) * 20 * KB, 8 * KB);
    return 0;
}

int main(int argc, char **argv) { return gort_main(body, argc, argv); }
