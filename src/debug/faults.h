#ifndef FAULTS_H
#define FAULTS_H

#include <stdbool.h>

/* Handlers of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT (told), SIGQUIT (dump) and SIGPIPE
 * (ignored). The thread that calls gort_main, at the start and the end of a runtime. whole_program:
 * it knows nothing of gort, and its threads are to be goroutines. */
void faults_install(bool whole_program);
void faults_uninstall(void);

#endif
