#ifndef FAULTS_H
#define FAULTS_H

/* The handlers of SIGSEGV (stack overflow) and SIGQUIT (dump), and SIGPIPE ignored: at the start
 * and the end of a runtime, on the thread that calls gort_main. */
void faults_install(void);
void faults_uninstall(void);
void faults_quit_handler(int on); /* signals.c: SIGQUIT is watched (0) or ours again (1) */

#endif
