/* What a thread leaves behind at its end the next one does not find: values that destructors of
 * keys set in the last round, thread_local objects that they were the first to use, libc's notes of
 * errors, and the tables of a locale that is the process's no more. */
#include "threads_test.h"

#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <locale.h>
#include <netdb.h>

int __cxa_thread_atexit_impl(void (*fn)(void *), void *object, void *library);
extern void *__dso_handle;

static pthread_key_t again, user;
static int rounds;

static void *run(void *(*fn)(void *), void *arg) {
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, fn, arg) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

static void set_again(void *value) {
    rounds++;
    pthread_setspecific(again, value);
}

/* As a compiler makes one. */
static __thread struct Object {
    bool made;
    int used;
} object;
static void object_gone(void *o) {
    CHECK(((struct Object *)o)->made);
    ((struct Object *)o)->made = false;
}
static void use_object(void *value) {
    if (!object.made) CHECK(__cxa_thread_atexit_impl(object_gone, &object, &__dso_handle) == 0);
    object.made = true;
    object.used++;
}

static void *leaves(void *value) {
    CHECK(pthread_setspecific(again, value) == 0 && pthread_setspecific(user, value) == 0);
    CHECK(dlopen("/nonexistent.so", RTLD_LAZY) == NULL);
    h_errno = NO_RECOVERY;
    errno = ENOENT;
    return NULL;
}
static void *finds_nothing(void *arg) {
    CHECK(errno == 0);
    CHECK(pthread_getspecific(again) == NULL && pthread_getspecific(user) == NULL);
    CHECK(!object.made && object.used == 0);
    use_object(NULL);
    CHECK(h_errno == 0 && dlerror() == NULL);
    return NULL;
}
static void *tables(void *arg) { return (void *)*__ctype_b_loc(); }

int main(void) {
    CHECK(pthread_key_create(&again, set_again) == 0);
    CHECK(pthread_key_create(&user, use_object) == 0);
    for (int i = 1; i <= 10; i++) {
        run(leaves, &rounds);
        CHECK(rounds == i * PTHREAD_DESTRUCTOR_ITERATIONS);
        run(finds_nothing, NULL);
    }
    run(tables, NULL);
    setlocale(LC_ALL, "C.UTF-8"); /* in a process that has it */
    CHECK(run(tables, NULL) == (const void *)*__ctype_b_loc());
    return 0;
}
