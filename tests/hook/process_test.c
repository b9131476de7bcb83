/* waitpid, system, getaddrinfo, gethostbyname_r. */
#include "hook.h"
#include <netdb.h>
#include <sys/ptrace.h>

#define CHILDREN 30
static int done, doors[CHILDREN][2];
static pid_t pids[CHILDREN];

static pid_t child(int i) {
    pid_t pid = fork();
    if (pid == 0) {
        char c;
        _exit(read(doors[i][0], &c, 1) == 1 ? i : 99); /* a child has no runtime: libc's */
    }
    return pid;
}

static void waiter(void *arg) {
    int i = (int)(intptr_t)arg, status;
    CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), i);
    add(&done, 1);
}

static void opens_late(void *arg) {
    wait_for_waiting("IO wait", 1);
    CHECK_EQ(write((int)(intptr_t)arg, "x", 1), 1);
}

static void children(void) {
    int status;
    for (intptr_t i = 0; i < CHILDREN; i++) {
        CHECK_EQ(pipe(doors[i]), 0);
        CHECK_GT(pids[i] = child((int)i), 0);
        CHECK_EQ(waitpid(pids[i], &status, WNOHANG), 0);
        gort_go(waiter, (void *)i);
    }
    wait_for_waiting("IO wait", CHILDREN); /* no thread each */
    for (int i = 0; i < CHILDREN; i++) CHECK_EQ(write(doors[i][1], "x", 1), 1);
    wait_until(get(&done) == CHILDREN);
    CHECK_FAILS(waitpid(pids[0], &status, 0), ECHILD);
    pid_t pid = child(7);
    CHECK_EQ(write(doors[7][1], "x", 1), 1);
    CHECK_EQ(waitpid(-1, &status, 0), pid);
    CHECK_EQ(WEXITSTATUS(status), 7);
}

/* A traced child is waited for when it stops, without WUNTRACED. It comes to be one while its
 * parent waits. */
static void traced(void) {
    int status, door[2];
    CHECK_EQ(pipe(door), 0);
    for (int round = 0; round < 3; round++) {
        gort_lock_thread(); /* the tracer is a thread */
        pid_t pid = fork();
        if (pid == 0) {
            char c;
            if (read(door[0], &c, 1) != 1) _exit(1);
            if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
            raise(SIGSTOP);
            raise(SIGSTOP);
            _exit(7);
        }
        intptr_t fd = door[1];
        if (round == 0) CHECK_EQ(gort_go(opens_late, (void *)fd), 0);
        else CHECK_EQ(write(door[1], "x", 1), 1); /* a tracer waits on a thread */
        int *told = round == 1 ? NULL : &status;
        CHECK_EQ(waitpid(pid, told, 0), pid);
        if (told && WIFEXITED(status) && WEXITSTATUS(status) == 77) SKIP("no ptrace");
        for (int stop = 0; stop < 2; stop++) {
            if (told) CHECK(WIFSTOPPED(status));
            CHECK_EQ(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
            CHECK_EQ(waitpid(pid, told, 0), pid);
        }
        if (told) CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        gort_unlock_thread();
    }
    close(door[0]);
    close(door[1]);
}

static bool is_pidfd(int fd) {
    char path[32], link[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, link, sizeof link - 1) > 0 && strstr(link, "pidfd") != NULL;
}

/* A program that replaces numbers which are not its own: the next owner keeps what it has. */
static void replaced(void) {
    int null = open("/dev/null", O_RDONLY), number = 3;
    set(&done, 0);
    CHECK_GT(pids[0] = child(0), 0);
    gort_go(waiter, (void *)0);
    wait_for_waiting("IO wait", 1);
    while (number < 2000 && !is_pidfd(number)) number++;
    if (number == 2000) SKIP("no pidfd to be seen");
    CHECK_EQ(dup2(null, number), number);
    wait_until(waiting_for("IO wait") == 0);
    CHECK_EQ(write(doors[0][1], "x", 1), 1);
    wait_until(get(&done) == 1);
    CHECK_GE(fcntl(number, F_GETFD), 0);
    CHECK_EQ(close(number), 0);
    close(null);
}

static void names(void) {
    struct addrinfo hints = {.ai_family = AF_INET,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST},
                    *res;
    CHECK_EQ(getaddrinfo("127.0.0.1", "80", &hints, &res), 0);
    CHECK_EQ(((struct sockaddr_in *)(void *)res->ai_addr)->sin_port, htons(80));
    freeaddrinfo(res);
    CHECK_EQ(getaddrinfo("no address", "80", &hints, &res), EAI_NONAME);
    struct hostent host, *found;
    char buf[1024];
    int error;
    CHECK_EQ(gethostbyname_r("127.0.0.1", &host, buf, sizeof buf, &found, &error), 0);
    CHECK(found == &host);
    CHECK_EQ(*(uint32_t *)(void *)host.h_addr_list[0], htonl(INADDR_LOOPBACK));
}

static int run(int argc, char **argv) {
    children();
    replaced();
    int status = system("exit 3");
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 3);
    CHECK(system(NULL) != 0);
    names();
    traced();
    return 0;
}
HOOK_MAIN(run)
