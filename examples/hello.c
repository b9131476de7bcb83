/* The smallest program: three goroutines, one channel. */
#include <gort.h>
#include <stdio.h>

static void greet(void *arg) {
    gort_chan *done = arg;
    printf("hello from a goroutine\n");
    gort_chan_send(done, NULL);
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    gort_chan *done = gort_chan_new(0, 0); /* elements of size 0: a pure signal */
    if (done == NULL) return 1;
    for (int i = 0; i < 3; i++)
        if (gort_go(greet, done) < 0) return 1; /* no memory */
    for (int i = 0; i < 3; i++) gort_chan_recv(done, NULL);
    printf("hello from main\n");
    gort_chan_release(done);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
