/* main is the only thread, and leaves by pthread_exit: the program ends, by exit(0). */
#include "threads_test.h"

static int begun;

static void at_exit(void) { _exit(begun ? 0 : 3); }

int main(void) {
    atexit(at_exit);
    begun = 1;
    pthread_exit(NULL);
}
