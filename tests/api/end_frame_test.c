/* Main may return while others wait for what stands in its own frame, or do its work: its objects
 * are let go of as any others are. */
#include "../lib/test.h"

typedef struct Objects {
    gort_mutex mutex;
    gort_rwmutex written, read;
    gort_sem sem;
    gort_mutex with;
    gort_cond cond;
    gort_wg wg, members;
    gort_once once;
} Objects;

enum { MUTEX, READER, WRITER, SEM, COND, WG, MEMBER, ONCE, KINDS };
static int under_way;

static void sleeps(void *arg) {
    __atomic_add_fetch(&under_way, 1, __ATOMIC_RELAXED);
    gort_sleep(1000 * GORT_SEC);
}

typedef struct Waiter {
    Objects *o;
    int kind;
} Waiter;
static Waiter waiters[KINDS][3];

static void waiter(void *arg) {
    Waiter *w = arg;
    Objects *o = w->o;
    if (w->kind == COND) gort_mutex_lock(&o->with);
    if (w->kind != ONCE) __atomic_add_fetch(&under_way, 1, __ATOMIC_RELAXED);
    switch (w->kind) {
    case MUTEX: gort_mutex_lock(&o->mutex); break;
    case READER: gort_rwmutex_rlock(&o->written); break;
    case WRITER: gort_rwmutex_lock(&o->read); break;
    case SEM: gort_sem_acquire(&o->sem, 1); break;
    case COND: gort_cond_wait(&o->cond, &o->with); break;
    case WG: gort_wg_wait(&o->wg); break;
    case ONCE: gort_once_do(&o->once, sleeps, NULL); break;
    }
    FAILF("goroutine of kind %d came through", w->kind);
}

static int body(int argc, char **argv) {
    Objects o;
    memset(&o, 0, sizeof o);
    under_way = 0;
    gort_mutex_lock(&o.mutex);
    gort_rwmutex_lock(&o.written);
    gort_rwmutex_rlock(&o.read);
    gort_wg_add(&o.wg, 1);
    for (int i = 0; i < KINDS; i++) {
        for (int j = 0; j < 3; j++) {
            waiters[i][j] = (Waiter){&o, i};
            if (i == MEMBER) CHECK_EQ(gort_wg_go(&o.members, sleeps, NULL), 0);
            else CHECK_EQ(gort_go(waiter, &waiters[i][j]), 0);
        }
    }
    /* the once's function runs in one */
    wait_until(__atomic_load_n(&under_way, __ATOMIC_RELAXED) == 3 * KINDS - 2);
    return argc;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 50; i++) CHECK_EQ(gort_main(body, 5, argv), 5);
    return 0;
}
