/*
 * Who waits for what: tests of queues have to know that somebody is queued before they go on. A
 * dump says so, in the words of the contract.
 */
#ifndef GORT_WAITING_H
#define GORT_WAITING_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* memfd_create */
#endif

#include "test.h"
#include <sys/mman.h>
#include <unistd.h>

/* How many goroutines wait with that reason at this moment. */
TEST_UNUSED static int waiting_for(const char *reason) {
    int fd = (int)memfd_create("dump", 0), n = 0;
    CHECK(fd >= 0);
    gort_dump(fd);
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = calloc(1, (size_t)size + 1), *line = text;
    CHECK(text != NULL && pread(fd, text, (size_t)size, 0) == size);
    close(fd);
    size_t len = strlen(reason);
    for (; line != NULL; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, "goroutine ", 10) != 0) continue;
        char *at = strchr(line, '[');
        if (at && strncmp(at + 1, reason, len) == 0 && strchr(",]", at[1 + len])) n++;
    }
    free(text);
    return n;
}

#endif
