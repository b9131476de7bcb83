/* GLib's locks wait by the futex system call; its threads' data are pthread keys. Each lock is held
 * over a sleep. */
#include "crowd.h"
#include <glib.h>

static GMutex mutex;
static GRecMutex recursive;
static GRWLock rwlock;
static GCond changed;
static GPrivate mine = G_PRIVATE_INIT(g_free);
static GAsyncQueue *queue;
static int turn, inside[3];

static void alone(int *in) {
    CHECK(__atomic_add_fetch(in, 1, __ATOMIC_SEQ_CST) == 1);
    g_usleep(10);
    CHECK(__atomic_sub_fetch(in, 1, __ATOMIC_SEQ_CST) == 0);
}

static void locks(int i) {
    int *own = g_new(int, 1);
    CHECK(g_private_get(&mine) == NULL);
    *own = i;
    g_private_set(&mine, own);
    g_mutex_lock(&mutex);
    alone(&inside[0]);
    g_mutex_unlock(&mutex);
    g_rec_mutex_lock(&recursive);
    g_rec_mutex_lock(&recursive);
    alone(&inside[1]);
    g_rec_mutex_unlock(&recursive);
    g_rec_mutex_unlock(&recursive);
    g_rw_lock_writer_lock(&rwlock);
    alone(&inside[2]);
    g_rw_lock_writer_unlock(&rwlock);
    CHECK(g_private_get(&mine) == own && *own == i);
}

static void turns(int i) {
    g_mutex_lock(&mutex);
    while (turn != i) g_cond_wait(&changed, &mutex);
    turn++;
    g_cond_broadcast(&changed);
    gint64 until = g_get_monotonic_time() + 100;
    while (g_cond_wait_until(&changed, &mutex, until)) {}
    g_mutex_unlock(&mutex);
}

static void push(void *arg) {
    for (intptr_t i = 1; i <= crowd_size(); i++) g_async_queue_push(queue, (void *)i);
}

static int sum;
static void pop(int i) {
    __atomic_fetch_add(&sum, (int)(intptr_t)g_async_queue_pop(queue), __ATOMIC_SEQ_CST);
}

static gboolean tick(gpointer arg) {
    int *left = arg;
    return --*left > 0;
}

/* A main loop of its own. */
static void loop(int i) {
    GMainContext *context = g_main_context_new();
    int left = 3;
    g_main_context_push_thread_default(context);
    GSource *source = g_timeout_source_new(1);
    g_source_set_callback(source, tick, &left, NULL);
    g_source_attach(source, context);
    while (left > 0) g_main_context_iteration(context, TRUE);
    CHECK(g_main_context_get_thread_default() == context);
    g_main_context_pop_thread_default(context);
    g_source_unref(source);
    g_main_context_unref(context);
}

static int run(int argc, char **argv) {
    queue = g_async_queue_new();
    crowd("GLib's locks", locks);
    crowd("GLib's conditions", turns);
    CHECK(gort_go(push, NULL) == 0);
    crowd("GLib's queue", pop);
    CHECK(sum == crowd_size() * (crowd_size() + 1) / 2);
    crowd("GLib's main loops", loop);
    return 0;
}
int main(int argc, char **argv) { return gort_main(run, argc, argv); }
