/*
 * select: whichever comes first. A quick answer, one that comes too late (the deadline of
 * gort_select_until), and a look that does not wait at all.
 */
#include <gort.h>
#include <stdio.h>
#include <stdlib.h>

GORT_CHAN_TYPE(texts, const char *)

static gort_chan *never; /* nobody ever sends on it */

static gort_wg servers;

static void quick(void *arg) {
    texts_send(arg, "a quick answer");
    texts_release(arg);
}

static void slow(void *arg) {
    gort_chan_recv(never, NULL);
    texts_send(arg, "too late");
    texts_release(arg);
}

static void ask(const char *whom, gort_fn *server, int64_t patience) {
    const char *answer = NULL;
    texts *c = texts_new(1); /* room for one: the server can leave it and go */
    if (c == NULL || gort_wg_go(&servers, server, texts_retain(c)) < 0) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    gort_case cases[] = {gort_on_recv(texts_chan(c), &answer), gort_on_recv(never, NULL)};
    int chosen = gort_select_until(cases, 2, gort_now() + patience);
    if (chosen == 0) printf("%s: %s\n", whom, answer);
    else if (chosen == -ETIMEDOUT) printf("%s: no answer in time\n", whom);
    texts_release(c);
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    never = gort_chan_new(0, 0);
    if (never == NULL) return 1; /* nil would not be ready either, but could not be closed */
    ask("the quick server", quick, 60 * GORT_SEC);
    ask("the slow server", slow, 20 * GORT_MS);

    gort_case cases[] = {gort_on_recv(never, NULL)};
    if (gort_try_select(cases, 1) == -EAGAIN) printf("nothing there right now\n");

    int64_t when; /* a timeout as a channel, Go's time.After */
    gort_chan *timeout = gort_after(5 * GORT_MS);
    if (timeout == NULL) return 1;
    int chosen = gort_select_of(gort_on_recv(never, NULL), gort_on_recv(timeout, &when));
    printf("case %d: the timer\n", chosen);
    gort_chan_release(timeout);

    gort_chan_close(never); /* the slow one may go home */
    gort_wg_wait(&servers);
    gort_chan_release(never);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
