/*
 * Whether a child process is stuck, judged by what it had, not by the time that has passed: on a
 * loaded machine everything takes long, and a limit in seconds would report the load.
 *
 * The caller knows how much processor time a sound child needs, at most, and that a sound child
 * never sleeps for long. So a child is stuck
 *
 * - when it has used more processor time than that: it loops, or those around it beat on and on;
 * - when it had the machine for many looks (STUCK_LOOKS) and did not end. It did not have it from
 *   one look to the next where its threads were kept waiting for a processor for half of the time,
 *   or one still waits for it or for the disk. Each look is 20 ms or more behind the last one, so
 *   1,500 are 30 seconds at least, and no load makes them come: where the child has to wait for
 *   others, or the machine itself stands, no look counts.
 *
 * Children of the child count with it. The looker calls stuck_look() every STUCK_PAUSE_MS or later.
 */
#ifndef GORT_STUCK_H
#define GORT_STUCK_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { STUCK_PAUSE_MS = 20, STUCK_LOOKS = 1500 };

typedef struct Stuck {
    pid_t pid;
    int seconds;                /* of processor time: one that uses more loops */
    int most;                   /* looks at which it had the machine */
    int looks;                  /* so many were */
    int64_t when, used, waited; /* at the last one, ns */
} Stuck;

/* What the threads of a process did until now. */
typedef struct StuckSum {
    int64_t used, waited; /* a processor; for one, in the past; ns */
    bool ready, disk;     /* a thread runs or could; one waits for the disk */
} StuckSum;

#define STUCK_FN __attribute__((unused)) static

STUCK_FN const char *stuck_read(pid_t pid, const char *tid, const char *file, char text[1000]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/%s", (int)pid, tid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, 999);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    return text;
}

STUCK_FN void stuck_sum(pid_t pid, StuckSum *sum);

STUCK_FN void stuck_thread(pid_t pid, const char *tid, StuckSum *sum) {
    char text[1000], *next;
    const char *name_end = strrchr(stuck_read(pid, tid, "stat", text), ')');
    if (name_end && strncmp(name_end, ") R", 3) == 0) sum->ready = true;
    if (name_end && strncmp(name_end, ") D", 3) == 0) sum->disk = true;
    sum->used += strtoll(stuck_read(pid, tid, "schedstat", text), &next, 10);
    sum->waited += strtoll(next, &next, 10);
    const char *at = stuck_read(pid, tid, "children", text);
    for (long child; (child = strtol(at, &next, 10)) > 0; at = next) stuck_sum((pid_t)child, sum);
}

STUCK_FN void stuck_sum(pid_t pid, StuckSum *sum) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.') stuck_thread(pid, e->d_name, sum);
    if (dir) closedir(dir);
}

/* Of the process's threads, the ended ones too. */
STUCK_FN int64_t stuck_used(pid_t pid) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The kernel counts a wait for a processor when it ends: one that lasts shows in what was used. */
STUCK_FN bool stuck_had_all(const Stuck *s, const StuckSum *sum, int64_t now) {
    int64_t half = (now - s->when) / 2;
    bool kept = sum->waited - s->waited >= half || (sum->ready && sum->used - s->used < half);
    return !kept && !sum->disk;
}

STUCK_FN bool stuck_look(Stuck *s) {
    StuckSum sum = {0, 0, false, false};
    struct timespec t;
    stuck_sum(s->pid, &sum);
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, own = stuck_used(s->pid);
    if (own > sum.used) sum.used = own;
    if (stuck_had_all(s, &sum, now)) s->looks++;
    s->when = now;
    s->used = sum.used;
    s->waited = sum.waited;
    return s->looks >= s->most || s->used > (int64_t)s->seconds * 1000000000;
}

#endif
