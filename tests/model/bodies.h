/* No goroutine of a model has a body (src/sched/body.c). */
#ifndef BODIES_H
#define BODIES_H

#include "sched/body.h"

M body_home;
void body_wear(M *m, G *gp) { wrong("no goroutine has a body here"); }
void body_doff(M *m, G *gp) {}
void body_exit(G *gp) {
    wrong("no goroutine has a body here");
    __builtin_trap();
}
void body_release(Stack *s, bool lost) { wrong("no goroutine has a body here"); }
void body_untake(Stack *s) {}
void *body_context(Stack *s) { return NULL; }
Stack *body_take(size_t size, int *error) { return NULL; }
void bodies_settle(void) {}
void bodies_forget(void) {}
void body_forked(char *was) {}
body_nudged_fn *body_nudged; /* nobody asks for signals */
body_attends_fn *body_attends;
body_passed_fn *body_passed;

#endif
