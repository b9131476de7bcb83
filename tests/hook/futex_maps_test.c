/*
 * Goroutines that wait for long for a futex which is not marked private ask whose memory its word
 * is in, by /proc/self/maps, which may take long to read: here for as long as a thread beside holds
 * that call (seccomp). Meanwhile the others run, on one P too, and nobody else reads it.
 */
#include "hook.h"
#include <limits.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE 1
#endif
#define CROWD 100

static int listener = -1, readers, released, done;
static uint32_t word;

static void go_on(uint64_t id) {
    struct seccomp_notif_resp answer = {.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* Every openat of the runtime's threads comes by here. A call that a signal has interrupted comes
 * again. */
static void *guard(void *arg) {
    struct seccomp_notif held = {0};
    while (get(&listener) < 0) usleep(1000);
    for (struct pollfd p = {.fd = listener, .events = POLLIN};;) {
        struct seccomp_notif call = {0};
        if (held.id != 0 && get(&released)) go_on(held.id), held.id = 0;
        if (poll(&p, 1, 1) != 1 || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
        const char *path = (const char *)(uintptr_t)call.data.args[1];
        if (get(&released) || strcmp(path, "/proc/self/maps") != 0) {
            go_on(call.id);
            continue;
        }
        if (held.id == 0 || call.pid != held.pid) add(&readers, 1);
        held = call;
    }
    return NULL;
}

static int guard_opens(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &filter);
}

static void waiter(void *arg) {
    while (get(&word) == 0) syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
    add(&done, 1);
}

static int run(int argc, char **argv) {
    for (int i = 0; i < CROWD; i++) CHECK_EQ(gort_go(waiter, NULL), 0);
    wait_until(get(&readers) > 0);
    gort_sleep(100 * GORT_MS); /* the others have waited for long, too */
    CHECK_EQ(get(&readers), 1);
    CHECK_LT(threads(), 40);
    set(&released, 1);
    set(&word, 1);
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    wait_until(get(&done) == CROWD);
    return 0;
}

int main(int argc, char **argv) {
    pthread_t t;
    check_hooked();
    CHECK_EQ(pthread_create(&t, NULL, guard, NULL), 0);
    int fd = guard_opens();
    if (fd < 0) SKIP("no seccomp here");
    set(&listener, fd);
    return gort_main(run, argc, argv);
}
