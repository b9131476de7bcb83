/* Where writers are preferred, no reader comes in while one waits: not by a call that waits, nor by
 * one that tries. */
#include "threads_test.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static int written;

static void *writes(void *arg) {
    CHECK(pthread_rwlock_wrlock(&lock) == 0);
    written = 1;
    CHECK(pthread_rwlock_unlock(&lock) == 0);
    return NULL;
}
static void *reads(void *arg) {
    CHECK(pthread_rwlock_rdlock(&lock) == 0);
    CHECK(written);
    CHECK(pthread_rwlock_unlock(&lock) == 0);
    return NULL;
}

int main(void) {
    pthread_t writer, reader;
    CHECK(pthread_rwlock_rdlock(&lock) == 0);
    CHECK(pthread_create(&writer, NULL, writes, NULL) == 0);
    for (int i = 0; pthread_rwlock_tryrdlock(&lock) != EBUSY; i++) {
        CHECK(i < 10000);
        CHECK(pthread_rwlock_unlock(&lock) == 0);
        usleep(1000);
    }
    CHECK(pthread_create(&reader, NULL, reads, NULL) == 0);
    usleep(10000);
    CHECK(!written);
    CHECK(pthread_rwlock_unlock(&lock) == 0);
    CHECK(pthread_join(writer, NULL) == 0 && pthread_join(reader, NULL) == 0);
    return 0;
}
