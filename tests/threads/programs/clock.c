#define _GNU_SOURCE
/* A library of the user's, preloaded, too: its clock blocks signals for a moment. */
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*libcs)(clockid_t, struct timespec *);
    sigset_t all, was;
    if (libcs == NULL) *(void **)&libcs = dlsym(RTLD_NEXT, "clock_gettime");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int r = libcs(clock, now);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    return r;
}
