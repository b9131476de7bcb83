/* What the kernel keeps for one of its threads, and a program changes by system calls that libc has
 * no function for, is the caller's, and nobody else's: a sandbox, a segment, a name. */
#include "threads_test.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { THREADS = 8, ROUNDS = 100 };

static bool reads(void) {
    int fd = open("/proc/self/exe", O_RDONLY);
    if (fd < 0) CHECK(errno == EACCES);
    else close(fd);
    return fd >= 0;
}

/* Even ones may not read any file from here on. */
static void *sandboxed(void *number) {
    struct {
        uint64_t files, net;
    } rules = {1 << 2, 0}; /* LANDLOCK_ACCESS_FS_READ_FILE */
    bool shut = (intptr_t)number % 2 == 0;
    int fd = shut ? (int)syscall(444, &rules, 8, 0) : -1; /* landlock_create_ruleset */
    if (shut && fd < 0) return NULL;                      /* there is none */
    if (shut) {
        CHECK(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        CHECK(syscall(446, fd, 0) == 0); /* landlock_restrict_self */
        close(fd);
    }
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(reads() == !shut);
        usleep(50);
    }
    return NULL;
}

static void *named(void *number) {
    char name[16], seen[16];
    snprintf(name, sizeof name, "mine-%d", (int)(intptr_t)number);
    CHECK(syscall(SYS_prctl, PR_SET_NAME, name, 0, 0, 0) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        usleep(50);
        CHECK(syscall(SYS_prctl, PR_GET_NAME, seen, 0, 0, 0) == 0 && strcmp(seen, name) == 0);
        CHECK(prctl(PR_GET_NAME, seen) == 0 && strcmp(seen, name) == 0);
    }
    return NULL;
}

static void *segment(void *number) {
#ifdef __x86_64__
    intptr_t mine = (intptr_t)number, seen;
    CHECK(syscall(SYS_arch_prctl, 0x1001, &mine) == 0); /* ARCH_SET_GS */
    for (int i = 0; i < ROUNDS; i++) {
        usleep(50);
        __asm__ volatile("movq %%gs:0, %0" : "=r"(seen));
        CHECK(seen == mine);
    }
    CHECK(syscall(SYS_arch_prctl, 0x1001, NULL) == 0);
#endif
    return NULL;
}

int main(void) {
    void *(*const kinds[])(void *) = {sandboxed, named, segment};
    pthread_t threads[3][THREADS];
    for (int k = 0; k < 3; k++)
        for (intptr_t i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[k][i], NULL, kinds[k], (void *)i) == 0);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[k][i], NULL) == 0);
    CHECK(reads());
    return 0;
}
