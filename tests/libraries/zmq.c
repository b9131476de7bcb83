/* ZeroMQ: hundreds of clients with a socket each, one server, over TCP and in the process. */
#include "crowd.h"
#include <zmq.h>

static void *context;
static char address[256];
static int served;

static void serve(void *arg) {
    void *s = arg;
    for (int n; (n = served) < crowd_size(); served++) {
        int number;
        CHECK(zmq_recv(s, &number, sizeof number, 0) == sizeof number);
        number *= 3;
        CHECK(zmq_send(s, &number, sizeof number, 0) == sizeof number);
    }
    zmq_close(s);
}

static void ask(int i) {
    void *s = zmq_socket(context, ZMQ_REQ);
    int number = i;
    CHECK(s != NULL && zmq_connect(s, address) == 0);
    CHECK(zmq_send(s, &number, sizeof number, 0) == sizeof number);
    CHECK(zmq_recv(s, &number, sizeof number, 0) == sizeof number);
    CHECK(number == i * 3);
    CHECK(zmq_close(s) == 0);
}

static void with(const char *what, const char *at) {
    void *s = zmq_socket(context, ZMQ_REP);
    gort_wg wg = {0};
    size_t size = sizeof address;
    CHECK(s != NULL && zmq_bind(s, at) == 0);
    CHECK(zmq_getsockopt(s, ZMQ_LAST_ENDPOINT, address, &size) == 0);
    served = 0;
    CHECK(gort_wg_go(&wg, serve, s) == 0);
    crowd(what, ask);
    gort_wg_wait(&wg);
}

static int run(int argc, char **argv) {
    context = zmq_ctx_new();
    CHECK(zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 4096) == 0);
    with("libzmq over TCP", "tcp://127.0.0.1:*");
    with("libzmq in the process", "inproc://crowd");
    CHECK(zmq_ctx_term(context) == 0);
    return 0;
}
int main(int argc, char **argv) { return gort_main(run, argc, argv); }
