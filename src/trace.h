/* Placeholders until the tracer is in: every decision has its event. */
#ifndef TRACE_H
#define TRACE_H

#include "runtime.h"

#define trace_create(m, gp) ((void)0)
#define trace_start(m, gp) ((void)0)
#define trace_block(m, gp, reason) ((void)0)
#define trace_ready(m, gp) ((void)0)
#define trace_yield(m, gp) ((void)0)
#define trace_end(m, gp) ((void)0)
#define trace_preempt(m, gp) ((void)0)
#define trace_syscall(m, gp) ((void)0)
#define trace_sysexit(m, gp) ((void)0)
#define trace_handoff(m, p) ((void)0)
#define trace_steal(m, victim, n) ((void)0)
#define trace_poll(m, n) ((void)0)
#define trace_timer(m) ((void)0)
#define trace_stw(m, on) ((void)0)

#endif
