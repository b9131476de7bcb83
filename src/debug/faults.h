#ifndef FAULTS_H
#define FAULTS_H

/* The handlers of SIGSEGV (stack overflow) and SIGQUIT (dump), and SIGPIPE ignored: at the start
 * and the end of a runtime, on the thread that calls gort_main. */
void faults_install(void);
void faults_uninstall(void);

#endif
