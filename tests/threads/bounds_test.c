/* What pthread_getattr_np says of a thread's stack: the size that was asked for, in whole pages,
 * and a range that holds its frames and its variables, as programs that scan their stack take it.
 */
#include "threads_test.h"

#include <limits.h>

static __thread int variable;

static void *looks(void *asked) {
    char *lo, *at = __builtin_frame_address(0);
    size_t size, guard;
    pthread_attr_t attr;
    CHECK(pthread_getattr_np(pthread_self(), &attr) == 0);
    CHECK(pthread_attr_getstack(&attr, (void **)&lo, &size) == 0);
    CHECK(pthread_attr_getguardsize(&attr, &guard) == 0);
    CHECK(size == (size_t)asked && (uintptr_t)lo % (size_t)sysconf(_SC_PAGESIZE) == 0);
    CHECK(guard == (size_t)sysconf(_SC_PAGESIZE));
    CHECK(at > lo && at < lo + size);
    CHECK((char *)&variable > at && (char *)&variable < lo + size);
    CHECK(pthread_attr_destroy(&attr) == 0);
    for (char *p = lo; p < at; p += 256) (void)*(volatile char *)p; /* all of it is there */
    return NULL;
}

static void looks_with(size_t size) {
    pthread_attr_t attr;
    pthread_t thread;
    CHECK(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, size) == 0);
    CHECK(pthread_create(&thread, &attr, looks, (void *)size) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
}

int main(void) {
    size_t least = (size_t)PTHREAD_STACK_MIN;
    for (int i = 0; i < 3; i++) {
        looks_with(least);
        looks_with(least + 65536);
        looks_with((size_t)1 << 20);
        looks_with((size_t)8 << 20);
    }
    return 0;
}
