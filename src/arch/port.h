/* What a port provides: declared here, or inline in its arch.h, which includes this file. */
#ifndef PORT_H
#define PORT_H

#include <stdint.h>

/* arch_switch(save, to)  saves this context, stores its place in *save and continues the context
 *                        `to`; it returns when the saved context is switched to
 * arch_fp_default()      sets the default floating-point environment, where a goroutine begins
 *                        without a switch
 * arch_fp_get(), arch_fp_set(fp)
 *                        the whole of it, flags included, as an ArchFp
 * arch_fp_rest(), arch_fp_rest_set(rest)
 *                        what arch_switch may leave behind of it, flags above all: only threads'
 *                        (sched/body.c) travels
 * arch_frame_record(fp)  where the caller's frame pointer and the return address stand
 * ARCH_STORE_SP(at)      stores the stack pointer as arch_context_sp() gives it to a handler from
 *                        here on
 * ARCH_TLS_READ(name)    reads a thread-local word anew each time: compilers keep the address of a
 *                        thread-local over calls, which is wrong once a goroutine changes threads
 * ARCH_THREAD_POINTER(), ARCH_TLS_AT(offset)
 *                        the thread pointer, and the word at an offset from it: thread-locals of
 *                        another module
 * arch_tp_set(tp)        sets the thread pointer
 * ARCH_RSEQ_SIGNATURE    by which libc registers for restartable sequences
 */

#ifndef ARCH_RETURNS_APART
#define ARCH_RETURNS_APART /* of use on x86-64 only, so far */
#endif

/* The value that an instruction puts into value_. */
#define ARCH_VALUE(type, ...)          \
    ({                                 \
        type value_;                   \
        __asm__ volatile(__VA_ARGS__); \
        value_;                        \
    })

/* Switching to the result calls entry(arg) on the new, aligned stack; unwinding ends there.
 * It writes ARCH_FIRST_FRAME bytes at most, below top. */
#define ARCH_FIRST_FRAME 256
void *arch_first_frame(void *top, void (*entry)(void *), void *arg);
/* Runs fn(arg) on the stack that ends at top. */
long arch_call_on(void *top, long (*fn)(void *), void *arg);
/* Calls fn(arg); if an exception unwinds it, exception.c learns of it. */
long arch_call_guarded(long (*fn)(void *), void *arg);

/* Registers of a signal's context. */
uintptr_t arch_context_pc(void *ucontext);
uintptr_t arch_context_sp(void *ucontext);
/* If our signal has interrupted a system call with -EINTR, sends the thread back to make it again;
 * not if a handler of the program has interrupted it. */
void arch_repair_eintr(void *ucontext);
/* What the system call has given that the thread has just made. */
long arch_context_result(void *ucontext);
/* The number, if the thread is about to make a system call. */
long arch_context_call(void *ucontext);
/* The thread is about to make a system call: it gets -EINTR instead. */
void arch_end_call(void *ucontext);

#endif
