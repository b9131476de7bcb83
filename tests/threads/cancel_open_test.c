/* A thread that waits in open, for the other end of a FIFO, is cancelled there. */
#include "threads_test.h"

#include <fcntl.h>
#include <sys/stat.h>

static char path[100];
static int begun, cleaned; /* atomic */

static void cleans(void *arg) { __atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST); }
static void *opens(void *arg) {
    errno = 0;
    CHECK(open("/nowhere/at/all", O_RDONLY) == -1 && errno == ENOENT);
    pthread_cleanup_push(cleans, NULL);
    __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
    open(path, *(int *)arg);
    CHECK(!"cancelled");
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/gort-fifo-%d", dir ? dir : "/tmp", (int)getpid());
    CHECK(mkfifo(path, 0600) == 0);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *value;
        int how = i % 2 ? O_RDONLY : O_WRONLY;
        begun = cleaned = 0;
        CHECK(pthread_create(&thread, NULL, opens, &how) == 0);
        wait_until(__atomic_load_n(&begun, __ATOMIC_SEQ_CST));
        if (i % 3) usleep(1000 * i); /* it waits in the kernel, perhaps without a P */
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED && cleaned == 1);
    }
    CHECK(unlink(path) == 0);
    return 0;
}
