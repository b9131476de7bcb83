/* Injected faults: which values are understood, and which of the calls they hit. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "../lib/test.h"
#undef set
#undef get
#undef add
#include "os/os.h"
#include "base/sysfault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool rule(const char *s) { return sysfault_rule(s, strlen(s)); }

static long eventfd_made(void) {
    long fd = os_sys(SYS_eventfd2, 0, 0, 0, 0, 0, 0);
    if (fd >= 0) close((int)fd);
    return fd >= 0 ? 0 : fd;
}

static void values(void) {
    static const char *const good[] = {
        "mmap:ENOMEM:1", "any:any:1/50", "any:any:1/50:7", "alloc:any:3+", "clone:11:2",
        "count",         "log"};
    static const char *const bad[] = {"",
                                      ":",
                                      "mmap",
                                      "mmap:ENOMEM",
                                      "mmap:ENOMEM:",
                                      "mmap:ENOMEM:0",
                                      "mmap:E:1",
                                      "mmap:0:1",
                                      "mmap:4096:1",
                                      "nothing:EIO:1",
                                      "mmap:EIO:1x",
                                      "mmap:EIO:1/",
                                      "mmap:EIO:1/0",
                                      "mmap:EIO:1/5:",
                                      "mmap:EIO:1/5:x",
                                      "mmap:EIO:99999999999999999999",
                                      "mmap:EIO:+"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) CHECK(rule(good[i]));
    CHECK(sysfault_on);
    sysfault_clear();
    CHECK(!sysfault_on);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!rule(bad[i]));
    CHECK(!sysfault_on);
    for (int i = 0; i < 8; i++) CHECK(rule("mmap:EIO:1000000"));
    CHECK(!rule("mmap:EIO:1000000"));
    sysfault_clear();
}

/* The counts go on through the process: each rule here is about a call of its own. */
static void nth(void) {
    CHECK(rule("eventfd2:EMFILE:2") && rule("eventfd2:ENFILE:4+"));
    CHECK_EQ(eventfd_made(), 0);
    CHECK_EQ(eventfd_made(), -EMFILE);
    CHECK_EQ(eventfd_made(), 0);
    CHECK_EQ(eventfd_made(), -ENFILE);
    CHECK_EQ(eventfd_made(), -ENFILE);
    sysfault_clear();
    CHECK_EQ(eventfd_made(), 0);
    CHECK(rule("alloc:any:1"));
    CHECK(sysfault_alloc() && !sysfault_alloc());
    sysfault_clear();
    CHECK(!sysfault_alloc());
}

static int refused_of_1000(const char *when) {
    int n = 0;
    CHECK(rule(when));
    for (int i = 0; i < 1000; i++) n += os_sys(SYS_socket, 1, 1, 0, 0, 0, 0) == -ENOBUFS;
    sysfault_clear();
    for (int fd = 3; fd < 1100; fd++) close(fd);
    return n;
}

static void drawn(void) {
    CHECK_EQ(refused_of_1000("socket:ENOBUFS:1/1:5"), 1000);
    int n = refused_of_1000("socket:ENOBUFS:1/4:5");
    CHECK(n > 150 && n < 350);
}

/* close reports and closes; waking a futex cannot fail. */
static void special(void) {
    int fd = open("/dev/null", O_RDONLY);
    CHECK(rule("close:EIO:1/1") && rule("futex:EINTR:1/1"));
    CHECK_EQ(os_sys(SYS_close, fd, 0, 0, 0, 0, 0), -EIO);
    uint32_t word = 0;
    CHECK_EQ(os_sys(SYS_futex, (long)&word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), 0);
    sysfault_clear();
    CHECK(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
}

int main(void) {
    values();
    nth();
    drawn();
    special();
    return 0;
}
