// Addresses that the system gives to another mapping are new memory, for ThreadSanitizer too: two
// threads that write there in turn, with nothing between them that orders them, are no race.
#include "base/base.h" // first: _GNU_SOURCE
#include "os/os.h"

#include "../lib/test.h"

#include <pthread.h>
#include <string.h>

#undef memset // the library's own accesses are not seen

enum { SIZE = 1 << 16, ROUNDS = 200 };
static uintptr_t was; // relaxed: orders nothing

static void *write_there(void *arg) {
    volatile size_t size = SIZE; // a call, which is seen
    char *at = os_map(SIZE, false);
    memset(at, 1, size);
    __atomic_store_n(&was, (uintptr_t)at, __ATOMIC_RELAXED);
    os_unmap(at, SIZE);
    return NULL;
}

int main(void) {
    int same = 0;
    for (int i = 0; i < ROUNDS; i++) {
        volatile size_t size = SIZE;
        pthread_t thread;
        __atomic_store_n(&was, 0, __ATOMIC_RELAXED);
        CHECK(pthread_create(&thread, NULL, write_there, NULL) == 0);
        uintptr_t before;
        while ((before = __atomic_load_n(&was, __ATOMIC_RELAXED)) == 0) {}
        os_nap(100000);
        char *at = os_map(SIZE, false);
        memset(at, 2, size);
        same += (uintptr_t)at == before;
        os_unmap(at, SIZE);
        pthread_join(thread, NULL);
    }
#ifndef __SANITIZE_ADDRESS__ /* a thread's end gives back ASan's own, and that place is nearer */
    CHECK(same > 0);
#endif
    return 0;
}
