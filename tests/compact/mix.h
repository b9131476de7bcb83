#include <gort.h>
long checked_sum(long depth, long (*next)(long));
long plain_use(long bytes);
long plain_calls_back(long depth);
void plain_goroutine(void *wg);
extern int plain_goroutines;
