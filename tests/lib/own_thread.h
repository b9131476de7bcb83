/*
 * How a test starts the goroutines that it is about. With OWN_THREAD=1 in the environment each is a
 * thread to libc (gort_attr.thread): what a library keeps for a thread is the goroutine's. For C
 * and C++.
 */
#ifndef OWN_THREAD_H
#define OWN_THREAD_H

#include <gort.h>
#include <stdlib.h>
#include <string.h>

static inline int own_thread(void) {
    const char *word = getenv("OWN_THREAD");
    return word && strcmp(word, "1") == 0;
}
static inline int go_as_asked(gort_fn *fn, void *arg) {
    gort_attr attr = {0};
    attr.thread = own_thread();
    return gort_go_with(&attr, fn, arg);
}

#endif
