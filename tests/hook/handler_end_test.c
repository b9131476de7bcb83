/*
 * A handler that posts a semaphore between any two instructions of a plain thread's end: the
 * processor steps through the destructors of the thread's keys, gort's among them. Every post
 * arrives.
 */
#include "hook.h"
#include <semaphore.h>
#include <ucontext.h>

#ifdef __x86_64__

#define STEPS 0x100 /* the processor's flag: SIGTRAP behind each instruction */
enum { THREADS = 20 };
static sem_t posts;
static int posted, taken;

/* From where libc or gort blocks signals on, the thread goes on without steps. */
static bool blocks_signals(const greg_t *regs) {
    const unsigned char *at = (const unsigned char *)regs[REG_RIP];
    return at[0] == 0x0f && at[1] == 0x05 && regs[REG_RAX] == SYS_rt_sigprocmask;
}

static void on_step(int signo, siginfo_t *info, void *context) {
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (blocks_signals(regs)) regs[REG_EFL] &= ~STEPS;
    posted++;
    sem_post(&posts);
}

static void *ends(void *arg) {
    gort_free(gort_alloc(1)); /* gort knows this thread */
    __asm__ volatile("pushfq\n orq %0, (%%rsp)\n popfq" ::"i"(STEPS) : "memory", "cc");
    return NULL;
}

static void take(void *arg) {
    for (;;) {
        CHECK_EQ(sem_wait(&posts), 0);
        add(&taken, 1);
    }
}

static int app(int argc, char **argv) {
    struct sigaction sa = {.sa_flags = SA_SIGINFO};
    sa.sa_sigaction = on_step;
    CHECK_EQ(sigaction(SIGTRAP, &sa, NULL), 0);
    CHECK_EQ(sem_init(&posts, 0, 0), 0);
    CHECK_EQ(gort_go(take, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, ends, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    CHECK_GT(posted, THREADS);
    wait_until(get(&taken) == posted);
    return 0;
}

HOOK_MAIN(app)

#else
int main(void) { SKIP("only x86-64's steps are known here"); }
#endif
