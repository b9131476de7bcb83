/*
 * A machine in one thread, in virtual time, for the library as it is (machine.c).
 */
#ifndef MACHINE_H
#define MACHINE_H

#include "runtime.h"

/* Before gort_main: everything that is chance on a machine is drawn from the seed. */
void machine_begin(uint64_t seed);
int64_t machine_now(void);
uint64_t machine_draw(uint64_t n); /* below n */

/* What a program does between two calls, in any thread of the machine. */
void machine_compute(int64_t ns); /* signals arrive here */
void machine_sleep(int64_t ns);   /* a call of the kernel that nobody has announced */

/* A thread that the runtime knows nothing of; it may compute, sleep, write into pipes and poke. */
void machine_thread(void *(*fn)(void *), void *arg);
void machine_poke(void); /* a descriptor may have become ready */

/* The program's: called every so often, and around a signal's handler. */
void machine_watch(int64_t now);
void machine_interrupted(bool begins);

_Noreturn void machine_tell_and_fail(void); /* the state of the scheduler, then exit status 1 */

#endif
