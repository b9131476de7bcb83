/* A chat room: a member is a reader, a writer and a channel of lines; the room is a list.
 *     ./chat 127.0.0.1:7000        then, in several windows: nc 127.0.0.1 7000
 * SIGTERM ends it: the context of all members is cancelled, and they are waited for. */
#include <gort.h>
#include <signal.h>
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

/* To everybody but `from`. A member who reads, however slowly, slows the room down. */
static void say(struct member *from, const char *format, int number, const char *text) {
    struct line l;
    snprintf(l.text, sizeof l.text, format, number, text);
    gort_mutex_lock(&room);
    for (struct member *m = members; m; m = m->next)
        if (m != from) lines_send(m->out, l); /* -EPIPE: is about to leave */
    gort_mutex_unlock(&room);
}

/* Who does not take a line within a second is dropped: the close ends those who wait to send to
 * this member, the shutdown ends the reader. The number stays open until serve() is through. */
static void writer(void *arg) {
    struct member *m = arg;
    struct line l;
    while (lines_recv(m->out, &l) == 0)
        if (gort_write_full_until(m->fd, l.text, strlen(l.text), gort_now() + GORT_SEC) < 0) break;
    lines_close(m->out);
    gort_shutdown(m->fd, SHUT_RDWR);
}

static int serve(gort_ctx *ctx, void *arg) {
    struct member *m = arg, **at = &members;
    char *line;
    gort_wg wg = {0};
    gort_reader *in = gort_reader_new(m->fd, 400);
    ssize_t n = in && gort_wg_go(&wg, writer, m) == 0 ? 0 : -ENOMEM;
    while (n >= 0 || n == -EMSGSIZE)
        if ((n = gort_reader_line(in, &line)) >= 0) say(m, "%d: %s\n", m->number, line);
    lines_close(m->out); /* who waits to send to it has the lock */
    gort_mutex_lock(&room);
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    gort_mutex_unlock(&room);
    say(NULL, "* %d has left%s\n", m->number, "");
    gort_wg_wait(&wg);
    gort_close(m->fd); /* nobody else uses it any more */
    gort_reader_free(in);
    lines_release(m->out);
    return free(m), (void)ctx, 0; /* the others go on */
}

static int come(gort_group *group, int fd, int number) {
    struct member *m = malloc(sizeof *m);
    lines *out = m ? lines_new(64) : NULL;
    if (out == NULL) return -ENOMEM;
    gort_mutex_lock(&room);
    members = memcpy(m, &(struct member){fd, number, out, members}, sizeof *m);
    gort_mutex_unlock(&room);
    say(m, "* %d has come%s\n", number, "");
    return gort_group_go(group, serve, m);
}

static void end_by_signal(void *arg) {
    gort_chan *signals = gort_chan_new(sizeof(int), 1);
    if (signals && gort_signal_notify(signals, SIGTERM) == 0) gort_chan_recv(signals, NULL);
    gort_ctx_cancel(arg);
}

static int run(int argc, char **argv) {
    char addr[64], *where = argc > 1 ? argv[1] : "127.0.0.1:7000";
    int last = 0, listener = gort_listen(where, 0);
    gort_ctx *ctx = gort_ctx_new(NULL);
    gort_group *group = ctx ? gort_group_new(ctx, 0) : NULL;
    int err = group ? gort_go(end_by_signal, ctx) : -ENOMEM;
    if (err == 0) err = listener < 0 ? listener : gort_local_addr(listener, addr, sizeof addr);
    if (err == 0) fprintf(stderr, "the room is %s\n", addr);
    gort_ctx_use(ctx);
    while (err == 0) {
        int fd = gort_accept(listener, NULL, NULL);
        if (fd >= 0) err = come(group, fd, ++last);
        else err = fd == -EMFILE ? gort_sleep(10 * GORT_MS) : fd; /* it waits in the queue */
    }
    if (err == -ECANCELED) return gort_group_wait(group) < 0;
    return fprintf(stderr, "chat: %s: %s\n", where, gort_addr_strerror(where, err)), 1;
}

int main(int argc, char **argv) { return gort_main(run, argc, argv); }
