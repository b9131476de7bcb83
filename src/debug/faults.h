#ifndef FAULTS_H
#define FAULTS_H

/* Handlers of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT (told), SIGQUIT (dump) and SIGPIPE
 * (ignored). The thread that calls gort_main, at the start and the end of a runtime. */
void faults_install(void);
void faults_uninstall(void);

#endif
