/*
 * Checksums of files, many at once: reads go through io_uring where the kernel has it.
 *
 *     cc checksum.c -Iinclude build/libgort.a -lpthread -o checksum
 *     ./checksum file...           prints what cksum prints: CRC, bytes, name; in the order given
 */
#include <fcntl.h>
#include <gort.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 64
#define BLOCK 65536

struct job {
    const char *name;
    uint32_t sum;
    off_t size;
    int error;
};

static uint32_t table[256];

static void make_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i << 24;
        for (int k = 0; k < 8; k++) c = c & 0x80000000u ? c << 1 ^ 0x04c11db7u : c << 1;
        table[i] = c;
    }
}

static uint32_t crc(uint32_t c, const unsigned char *p, size_t n) {
    while (n-- > 0) c = c << 8 ^ table[c >> 24 ^ *p++];
    return c;
}

/* POSIX cksum: the length, least byte first, follows the data. */
static uint32_t finish(uint32_t c, off_t size) {
    for (; size != 0; size >>= 8) c = c << 8 ^ table[c >> 24 ^ (size & 0xff)];
    return ~c;
}

static int sum_file(gort_ctx *ctx, void *arg) {
    struct job *j = arg;
    unsigned char *buf = malloc(BLOCK);
    int fd = buf ? gort_open(j->name, O_RDONLY | O_CLOEXEC, 0) : -ENOMEM;
    ssize_t n = fd;
    uint32_t c = 0;
    while (fd >= 0 && (n = gort_pread(fd, buf, BLOCK, j->size)) > 0) {
        c = crc(c, buf, (size_t)n);
        j->size += n;
    }
    j->sum = finish(c, j->size);
    j->error = n < 0 ? (int)n : 0;
    if (fd >= 0) gort_close(fd);
    free(buf);
    return 0; /* one bad file does not stop the others */
}

static int run(int argc, char **argv) {
    int failed = 0;
    if (argc < 2) return fprintf(stderr, "usage: checksum FILE...\n"), 2;
    make_table();
    struct job *jobs = calloc((size_t)argc, sizeof *jobs);
    gort_group *group = gort_group_new(NULL, AT_ONCE);
    if (jobs == NULL || group == NULL) return 1;
    for (int i = 1; i < argc; i++) {
        jobs[i].name = argv[i];
        if (gort_group_go(group, sum_file, &jobs[i]) < 0) jobs[i].error = -ENOMEM;
    }
    gort_group_wait(group);
    for (int i = 1; i < argc; i++) {
        if (jobs[i].error == 0)
            printf("%u %lld %s\n", jobs[i].sum, (long long)jobs[i].size, jobs[i].name);
        else
            fprintf(stderr, "checksum: %s: %s\n", jobs[i].name, strerror(-jobs[i].error)),
                failed = 1;
    }
    free(jobs);
    return failed;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
