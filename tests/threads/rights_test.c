/* Who a process and its threads are. setuid and its like, from any thread, reach every kernel
 * thread while others run, wait, begin and end. What only the caller's kernel thread has (setfsuid,
 * a directory or names of its own, capabilities, no_new_privs) is the caller's, and nobody else's.
 */
#include "threads_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int capset(void *header, const void *data); /* of libc, without a header there */

enum { NOBODY = 65534 };
static int stop; /* atomic */
static pthread_barrier_t barrier;

static void run(void *(*fn)(void *), void *arg) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fn, arg) == 0 && pthread_join(thread, NULL) == 0);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool stopped(void) { return __atomic_load_n(&stop, __ATOMIC_RELAXED); }

static void *computes(void *arg) {
    while (!stopped()) {}
    return arg;
}
static void *naps(void *arg) {
    while (!stopped()) usleep(1000);
    return arg;
}
static void *nothing(void *arg) { return arg; }
static void *makes(void *arg) {
    while (!stopped()) run(nothing, NULL);
    return arg;
}

/* How many kernel threads have that effective user; *others: how many have not. */
static int users(unsigned want, int *others) {
    DIR *dir = opendir("/proc/self/task");
    struct dirent *e;
    int n = 0;
    *others = 0;
    CHECK(dir);
    while ((e = readdir(dir)) != NULL) {
        char path[300], line[256];
        unsigned real, effective;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = e->d_name[0] != '.' ? fopen(path, "r") : NULL;
        while (f && fgets(line, sizeof line, f))
            if (sscanf(line, "Uid: %u %u", &real, &effective) == 2)
                *(effective == want ? &n : others) += 1;
        if (f) fclose(f);
    }
    closedir(dir);
    return n;
}

static void *changes_user(void *arg) {
    int others;
    for (int i = 0; i < 10; i++) {
        CHECK(setresuid((uid_t)-1, geteuid(), (uid_t)-1) == 0);
        CHECK(setresgid((gid_t)-1, getegid(), (gid_t)-1) == 0);
        if (getuid() != 0) continue;
        CHECK(setegid(NOBODY) == 0 && seteuid(NOBODY) == 0 && geteuid() == NOBODY);
        CHECK(users(NOBODY, &others) >= 1 && others == 0);
        CHECK(seteuid(1) == -1 && errno == EPERM && geteuid() == NOBODY);
        CHECK(seteuid(0) == 0 && setegid(0) == 0);
        CHECK(users(0, &others) >= 1 && others == 0);
    }
    return arg;
}

static void all_change(void) {
    pthread_t threads[12];
    for (int i = 0; i < 12; i++)
        CHECK(pthread_create(&threads[i], NULL,
                             i < 2    ? computes
                             : i < 11 ? naps
                                      : makes,
                             NULL) == 0);
    for (int i = 0; i < 3; i++) run(changes_user, NULL);
    changes_user(NULL); /* main */
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 12; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- one ------------------------------------------------------------------------------------- */

static char before[4096];

static void *has_own(void *arg) {
    bool root = geteuid() == 0;
    CHECK(unshare(CLONE_FS) == 0 && chdir("/proc") == 0);
    CHECK(personality(PER_LINUX | ADDR_NO_RANDOMIZE) != -1);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
          prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    int fd = open("/proc/self/ns/uts", O_RDONLY);
    CHECK(fd >= 0 && (setns(fd, CLONE_NEWUTS) == 0 || errno == EPERM) && close(fd) == 0);
    if (root) {
        setfsgid(NOBODY);
        setfsuid(NOBODY);
    }
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    CHECK(capset(&header, data) == 0);
    for (int i = 0; i < 20; i++) { /* also behind switches */
        char now[4096];
        pthread_barrier_wait(&barrier);
        CHECK(getcwd(now, sizeof now) && strcmp(now, "/proc") == 0);
        CHECK(personality(0xffffffff) == (PER_LINUX | ADDR_NO_RANDOMIZE));
        CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
        CHECK(!root || setfsuid((uid_t)-1) == NOBODY);
        CHECK(syscall(SYS_capget, &header, data) == 0 && data[0].effective == 0);
    }
    return arg;
}

static void is_as_before(uint32_t rights) {
    char now[4096];
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    CHECK(getcwd(now, sizeof now) && strcmp(now, before) == 0);
    CHECK(!(personality(0xffffffff) & ADDR_NO_RANDOMIZE));
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
    CHECK(setfsuid((uid_t)-1) == (int)geteuid() && setfsgid((gid_t)-1) == (int)getegid());
    CHECK(syscall(SYS_capget, &header, data) == 0 && data[0].effective == rights);
}

static void *watches(void *rights) {
    for (int i = 0; i < 50; i++) {
        is_as_before(*(uint32_t *)rights);
        usleep(100);
    }
    return NULL;
}

static void one_has_own(void) {
    pthread_t own, threads[5];
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    CHECK(syscall(SYS_capget, &header, data) == 0 && getcwd(before, sizeof before));
    CHECK(pthread_create(&own, NULL, has_own, NULL) == 0);
    for (int i = 0; i < 5; i++)
        CHECK(pthread_create(&threads[i], NULL, watches, &data[0].effective) == 0);
    for (int i = 0; i < 20; i++) {
        pthread_barrier_wait(&barrier);
        is_as_before(data[0].effective);
    }
    CHECK(pthread_join(own, NULL) == 0);
    for (int i = 0; i < 5; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 5; i++) run(watches, &data[0].effective);
}

int main(void) {
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0 ||
        (personality(0xffffffff) & ADDR_NO_RANDOMIZE))
        return 77;
    pthread_barrier_init(&barrier, NULL, 2);
    all_change();
    one_has_own();
    return 0;
}
