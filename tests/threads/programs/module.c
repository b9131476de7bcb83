/* A library with variables of the thread's, opened and closed while threads live: modules.c. Built
 * twice, with dynamic and with initial-exec storage. */
#ifndef STORAGE
#define STORAGE
#endif
static __thread int counts STORAGE = FIRST_VALUE;
static __thread char zeroed[64] STORAGE;

int module_next(void);
int module_next(void) {
    if (zeroed[counts % 64]) return -1;
    if (counts == FIRST_VALUE + 63) return -1;
    zeroed[counts % 64] = 1;
    return counts++;
}
