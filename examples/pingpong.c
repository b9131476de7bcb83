/* Two goroutines and a ball. Each waits for it, counts, and sends it back. */
#include <gort.h>
#include <stdio.h>

GORT_CHAN_TYPE(balls, int)

typedef struct {
    const char *name;
    balls *from, *to;
    gort_wg *wg;
} Player;
enum { RALLY = 100000 };

static void play(void *arg) {
    Player *p = arg;
    for (int hits; balls_recv(p->from, &hits) == 0;) {
        if (hits % (RALLY / 4) == 0) printf("%s: hit %d\n", p->name, hits);
        if (hits == RALLY) {
            balls_close(p->to); /* the other one stops, too */
            break;
        }
        balls_send(p->to, hits + 1);
    }
    gort_wg_done(p->wg);
}

static int app(int argc, char **argv) {
    (void)argc, (void)argv;
    gort_wg wg = {0};
    balls *left = balls_new(0), *right = balls_new(0);
    Player ping = {"ping", left, right, &wg}, pong = {"pong", right, left, &wg};
    if (left == NULL || right == NULL) return 1;
    gort_wg_add(&wg, 2);
    if (gort_go(play, &ping) < 0 || gort_go(play, &pong) < 0) return 1;
    balls_send(left, 1);
    gort_wg_wait(&wg);
    balls_release(left);
    balls_release(right);
    return 0;
}

int main(int argc, char **argv) { return gort_main(app, argc, argv); }
