/* libssh2: hundreds of sessions with one server, as far as its key and the ways to log in.
 * Argument: the port. */
#include "crowd.h"
#include <arpa/inet.h>
#include <errno.h>
#include <libssh2.h>
#include <poll.h>
#include <sys/socket.h>

static int port;
static char first[32];
static int known;
static gort_sem places;
/* sshd's queue of new connections holds 128: the kernel resets what waits there for long. */
#define PLACES 100

static void meet(int i) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd greeted = {.fd = fd, .events = POLLIN};
    gort_sem_acquire(&places, 1);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(poll(&greeted, 1, -1) == 1);
    gort_sem_release(&places, 1);
    LIBSSH2_SESSION *s = libssh2_session_init();
    libssh2_session_set_blocking(s, 1);
    char *why = "";
    int r = libssh2_session_handshake(s, fd);
    if (r != 0)
        libssh2_session_last_error(s, &why, NULL, 0),
            fprintf(stderr, "%d %s, errno %d\n", r, why, errno);
    CHECK(r == 0);
    const char *key = libssh2_hostkey_hash(s, LIBSSH2_HOSTKEY_HASH_SHA256);
    CHECK(key != NULL);
    if (__atomic_exchange_n(&known, 1, __ATOMIC_SEQ_CST) == 0) memcpy(first, key, sizeof first);
    else CHECK(memcmp(key, first, sizeof first) == 0);
    char *list = libssh2_userauth_list(s, "nobody", 6);
    CHECK(list != NULL && strstr(list, "publickey") != NULL);
    libssh2_session_disconnect(s, "thank you");
    libssh2_session_free(s);
    close(fd);
}

static int run(int argc, char **argv) {
    port = atoi(argv[1]);
    gort_sem_release(&places, PLACES);
    meet(0);
    crowd("libssh2", meet);
    return 0;
}
int main(int argc, char **argv) {
    CHECK(libssh2_init(0) == 0);
    return gort_main(run, argc, argv);
}
