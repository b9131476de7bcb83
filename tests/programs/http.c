/* An HTTP server with a thread for each connection, by libmicrohttpd. GET /N answers with N and its
 * square. Serves until its input ends, then says how many requests it has answered. Arguments: the
 * port, how many connections, keep: a connection stays for the next request. (libmicrohttpd closes
 * one that is answered before it has looked for the end of the request.) */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long answered; /* atomic */
static int keep;

static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state) {
    char text[64];
    if (keep && *state == NULL) {
        *state = &keep;
        return MHD_YES;
    }
    unsigned long n = strtoul(url + 1, NULL, 10);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0) return MHD_NO;
    int size = snprintf(text, sizeof text, "%lu squared is %lu\n", n, n * n);
    struct MHD_Response *r =
        MHD_create_response_from_buffer((size_t)size, text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result done = MHD_queue_response(connection, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    __atomic_add_fetch(&answered, 1, __ATOMIC_SEQ_CST);
    return done;
}

int main(int argc, char **argv) {
    char byte;
    if (argc < 3) return 2;
    keep = argc > 3 && strcmp(argv[3], "keep") == 0;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL,
        (uint16_t)atoi(argv[1]), NULL, NULL, answer, NULL, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)atoi(argv[2]), MHD_OPTION_LISTEN_BACKLOG_SIZE, 4096u,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)128 << 10, MHD_OPTION_END);
    if (daemon == NULL) return 1;
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {}
    MHD_stop_daemon(daemon);
    printf("%lu answered\n", __atomic_load_n(&answered, __ATOMIC_SEQ_CST));
    return 0;
}
