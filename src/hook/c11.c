/* C11's threads.h. Its objects are libc's pthread objects under other names, but libc's functions
 * for them call pthread functions inside libc, where no hook stands. These call the hook's. */
#include "hook/hook_internal.h"

#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t),
               "glibc's");
static pthread_mutex_t *mutex_of(mtx_t *m) { return (pthread_mutex_t *)(void *)m; }
static pthread_cond_t *cond_of(cnd_t *c) { return (pthread_cond_t *)(void *)c; }

static int thrd_result(int r) {
    switch (r) {
    case 0: return thrd_success;
    case EBUSY: return thrd_busy;
    case ETIMEDOUT: return thrd_timedout;
    case ENOMEM: return thrd_nomem;
    default: return thrd_error;
    }
}

HOOK int mtx_lock(mtx_t *m) { return thrd_result(pthread_mutex_lock(mutex_of(m))); }
HOOK int mtx_trylock(mtx_t *m) { return thrd_result(pthread_mutex_trylock(mutex_of(m))); }
HOOK int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict at) {
    return thrd_result(pthread_mutex_timedlock(mutex_of(m), at));
}
HOOK int mtx_unlock(mtx_t *m) { return thrd_result(pthread_mutex_unlock(mutex_of(m))); }

HOOK int cnd_wait(cnd_t *c, mtx_t *m) {
    return thrd_result(pthread_cond_wait(cond_of(c), mutex_of(m)));
}
HOOK int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict at) {
    return thrd_result(pthread_cond_timedwait(cond_of(c), mutex_of(m), at));
}
HOOK int cnd_signal(cnd_t *c) { return thrd_result(pthread_cond_signal(cond_of(c))); }
HOOK int cnd_broadcast(cnd_t *c) { return thrd_result(pthread_cond_broadcast(cond_of(c))); }

HOOK void call_once(once_flag *once, void (*init)(void)) {
    pthread_once((pthread_once_t *)(void *)once, init);
}

HOOK int thrd_join(thrd_t thread, int *value) {
    void *result = NULL;
    int r = pthread_join((pthread_t)thread, &result);
    if (value) *value = (int)(intptr_t)result;
    return thrd_result(r);
}

HOOK int tss_create(tss_t *key, tss_dtor_t destroy) {
    return thrd_result(key_create(key, destroy, __builtin_return_address(0)));
}
HOOK void tss_delete(tss_t key) { pthread_key_delete(key); }
HOOK void *tss_get(tss_t key) { return pthread_getspecific(key); }
HOOK int tss_set(tss_t key, void *value) { return thrd_result(pthread_setspecific(key, value)); }

HOOK void thrd_yield(void) { sched_yield(); }

HOOK int thrd_sleep(const struct timespec *ts, struct timespec *rest) {
    int r = clock_nanosleep(CLOCK_REALTIME, 0, ts, rest);
    return r == 0 ? 0 : r == EINTR ? -1 : -2;
}
