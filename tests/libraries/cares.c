/* c-ares: hundreds of resolvers, each with a channel of its own, and a server of names that is a
 * goroutine. */
#include "crowd.h"
#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

static int port;

/* Answers "number-N.test." with 10.0.x.y, after a while. */
typedef struct Question {
    struct sockaddr_in from;
    int fd;
    ssize_t n;
    unsigned char text[512];
} Question;

static void answer(void *arg) {
    Question *q = arg;
    int number = atoi((char *)q->text + 13 + strlen("number-"));
    gort_sleep(20 * GORT_MS);
    q->text[2] |= 0x80, q->text[7] = 1; /* an answer, with one record */
    q->text[10] = q->text[11] = 0;      /* and nothing else: EDNS is left out */
    size_t end = 12 + strlen((char *)q->text + 12) + 5;
    unsigned char record[] = {0xc0,
                              12,
                              0,
                              1,
                              0,
                              1,
                              0,
                              0,
                              0,
                              60,
                              0,
                              4,
                              10,
                              0,
                              (unsigned char)(number >> 8),
                              (unsigned char)number};
    memcpy(q->text + end, record, sizeof record);
    sendto(q->fd, q->text, end + sizeof record, 0, (struct sockaddr *)&q->from, sizeof q->from);
    free(q);
}

static void serve(void *arg) {
    int fd = (int)(intptr_t)arg;
    for (;;) {
        Question *q = calloc(1, sizeof *q);
        socklen_t len = sizeof q->from;
        q->fd = fd;
        q->n = recvfrom(fd, q->text, 256, 0, (struct sockaddr *)&q->from, &len);
        CHECK(q->n > 12);
        gort_go(answer, q);
    }
}

typedef struct Result {
    int status, done;
    unsigned address;
} Result;

static void found(void *arg, int status, int timeouts, struct hostent *host) {
    Result *r = arg;
    r->status = status;
    if (host) r->address = ntohl(*(unsigned *)host->h_addr_list[0]);
    r->done = 1;
}

static void wait_for_it(ares_channel channel) {
    ares_socket_t fds[ARES_GETSOCK_MAXNUM];
    struct pollfd p[ARES_GETSOCK_MAXNUM];
    struct timeval tv, most = {1, 0}, *t = ares_timeout(channel, &most, &tv);
    int bits = ares_getsock(channel, fds, ARES_GETSOCK_MAXNUM), n = 0;
    for (int i = 0; i < ARES_GETSOCK_MAXNUM; i++)
        if (ARES_GETSOCK_READABLE(bits, i) || ARES_GETSOCK_WRITABLE(bits, i))
            p[n++] = (struct pollfd){
                fds[i], (short)(POLLIN | (ARES_GETSOCK_WRITABLE(bits, i) ? POLLOUT : 0)), 0};
    poll(p, (nfds_t)n, (int)(t->tv_sec * 1000 + t->tv_usec / 1000));
    for (int i = 0; i < n; i++)
        ares_process_fd(channel, p[i].revents & ~POLLOUT ? p[i].fd : ARES_SOCKET_BAD,
                        p[i].revents & POLLOUT ? p[i].fd : ARES_SOCKET_BAD);
    if (n == 0) ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static void look_up(int i) {
    ares_channel channel;
    char name[64], servers[64];
    Result r = {0};
    struct ares_options o = {.timeout = 20000, .tries = 3};
    CHECK(ares_init_options(&channel, &o, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES) == ARES_SUCCESS);
    snprintf(servers, sizeof servers, "127.0.0.1:%d", port);
    CHECK(ares_set_servers_ports_csv(channel, servers) == ARES_SUCCESS);
    snprintf(name, sizeof name, "number-%d.test.", i);
    ares_gethostbyname(channel, name, AF_INET, found, &r);
    while (!r.done) wait_for_it(channel);
    if (r.status != ARES_SUCCESS) fprintf(stderr, "%s\n", ares_strerror(r.status));
    CHECK(r.status == ARES_SUCCESS && r.address == (10u << 24) + (unsigned)i);
    ares_destroy(channel);
}

static int run(int argc, char **argv) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), large = 4 << 20;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
          getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    port = ntohs(at.sin_port);
    CHECK(gort_go(serve, (void *)(intptr_t)fd) == 0);
    crowd("c-ares", look_up);
    return 0;
}
int main(int argc, char **argv) {
    ares_library_init(ARES_LIB_INIT_ALL);
    return gort_main(run, argc, argv);
}
