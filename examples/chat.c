/* A chat room: a member is a reader, a writer and a channel of lines; the room is a list.
 *     ./chat 127.0.0.1:7000        then, in several windows: nc 127.0.0.1 7000 */
#include <gort.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    char text[500];
};
GORT_CHAN_TYPE(lines, struct line)

struct member {
    int fd, number;
    lines *out;
    struct member *next;
};

static gort_mutex room;
static struct member *members;
static int last_number;

/* To everybody but `from`. A member who reads, however slowly, slows the room down; one who takes
 * nothing for a second is dropped: the shutdown ends reader and writer, whatever they wait for. */
static void say(struct member *from, const char *format, int number, const char *text) {
    struct line l;
    snprintf(l.text, sizeof l.text, format, number, text);
    gort_mutex_lock(&room);
    for (struct member *m = members; m; m = m->next) {
        if (m == from || lines_send_until(m->out, l, gort_now() + GORT_SEC) != -ETIMEDOUT) continue;
        lines_close(m->out);
        gort_shutdown(m->fd, SHUT_RDWR);
    }
    gort_mutex_unlock(&room);
}

static void writer(void *arg) {
    struct member *m = arg;
    struct line l;
    while (lines_recv(m->out, &l) == 0)
        if (gort_write_full(m->fd, l.text, strlen(l.text)) < 0) break;
    gort_shutdown(m->fd, SHUT_RDWR); /* ends the reader too */
}

static void leave(struct member *m) {
    struct member **at = &members;
    gort_mutex_lock(&room);
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    gort_mutex_unlock(&room);
    lines_close(m->out);
    say(NULL, "* %d has left%s\n", m->number, "");
}

static void enter(struct member *m) {
    gort_mutex_lock(&room);
    m->number = ++last_number;
    m->next = members;
    members = m;
    gort_mutex_unlock(&room);
    say(m, "* %d has come%s\n", m->number, "");
}

static void serve(void *arg) {
    struct member *m = arg;
    gort_wg wg = {0};
    gort_reader *in = gort_reader_new(m->fd, 400);
    char *line;
    ssize_t n = in && gort_wg_go(&wg, writer, m) == 0 ? 0 : -ENOMEM;
    while (n >= 0 || n == -EMSGSIZE) {
        n = gort_reader_line(in, &line);
        if (n >= 0) say(m, "%d: %s\n", m->number, line);
    }
    leave(m);
    gort_wg_wait(&wg);
    gort_close(m->fd); /* nobody else uses it any more */
    gort_reader_free(in);
    lines_release(m->out);
    free(m);
}

static int run(int argc, char **argv) {
    char addr[64] = "";
    int listener = gort_listen(argc > 1 ? argv[1] : "127.0.0.1:7000", 0), fd;
    gort_local_addr(listener, addr, sizeof addr);
    fprintf(stderr, "the room is %s\n", listener < 0 ? strerror(-listener) : addr);
    while ((fd = gort_accept(listener, NULL, NULL)) >= 0) {
        struct member *m = malloc(sizeof *m);
        lines *out = m ? lines_new(64) : NULL;
        if (out == NULL) return ENOMEM;
        *m = (struct member){.fd = fd, .out = out};
        enter(m);
        if (gort_go(serve, m) < 0) return ENOMEM;
    }
    return 1;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
