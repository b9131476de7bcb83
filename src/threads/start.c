/*
 * A program begins: GORT_THREADS=1, and the hook is preloaded.
 *
 * Nothing happens until main's thread makes the first other one: a program with one thread is as it
 * ever was, and so is a child of it (a shell's, a server's that goes into the background). Until
 * then what main sets for its kernel thread (priority, CPUs, rights, signal mask) is inherited by
 * all that the runtime makes, as by a thread of libc's.
 *
 * At the first pthread_create a runtime begins. main goes on as goroutine 1, with its descriptor,
 * its variables and its stack (core->lead). The record of that stack needs a place above main's
 * frames. The program's first code calls libc's __libc_start_main, which stands here first: the
 * place is in its frame, above those of the program's own constructors, too.
 *
 * A simulation (GORT_SIM) begins with main already.
 *
 * A thread that a library's constructor makes before is the kernel's, and so are those that it
 * makes. Where a runtime cannot be, threads stay threads, and a line says so.
 */
#include "threads/threads.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

typedef int main_fn(int, char **, char **);
typedef void step(void);
typedef int start_fn(main_fn *fn, int argc, char **argv, step *init, step *fini, step *loader_fini,
                     void *stack_end);
start_fn __libc_start_main;

static struct {
    main_fn *main;
    int argc;
    char **argv;
    bool refused; /* there can be no runtime: its threads stay threads */
} program;

static void core_found(void) {
    Dl_info of;
    struct link_map *map;
    if (dladdr1((const void *)gort_hook_core, &of, (void **)&map, RTLD_DL_LINKMAP) == 0) return;
    const ElfW(Ehdr) *elf = of.dli_fbase;
    const ElfW(Phdr) *part = (const void *)((const char *)elf + elf->e_phoff);
    threads.core = map->l_addr;
    for (int i = 0; i < elf->e_phnum; i++)
        if (part[i].p_type == PT_LOAD) threads.core_size = part[i].p_vaddr + part[i].p_memsz;
}

bool is_cores(uintptr_t code) { return code - threads.core < threads.core_size; }

/* How far main's stack may reach down from here, as the kernel sees it now. */
#define STACK_MOST ((size_t)1 << 30)
static size_t stack_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > STACK_MOST) return STACK_MOST;
    return limit.rlim_cur;
}

/* A note that Go's linker leaves in each program. Go has goroutines of its own, and knows the
 * thread under them by what libc is not asked about: system calls, stacks for signals. The program
 * is the first of the modules. */
static int looks_for_go(struct dl_phdr_info *info, size_t size, void *is_go) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const char *at = (const char *)info->dlpi_addr + part->p_vaddr, *end = at + part->p_memsz;
        if (part->p_type != PT_NOTE) continue;
        while ((size_t)(end - at) >= sizeof(ElfW(Nhdr)) + 4) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note;
            if (note->n_namesz == 4 && memcmp(name, "Go\0", 4) == 0) *(bool *)is_go = true;
            at = name + ((note->n_namesz + 3) & ~3U) + ((note->n_descsz + 3) & ~3U);
            if (at > end || at < name) break;
        }
    }
    return 1;
}
static bool is_go(void) {
    bool is = false;
    dl_iterate_phdr(looks_for_go, &is);
    return is;
}

static const char *reason(int r) {
    return r == -ENOTSUP ? "this libc or machine is not known"
           : r == -EBUSY ? "the program has a runtime already"
           : r == -EPERM ? "a Go program has goroutines of its own"
                         : strerror(-r);
}

/* On main's thread, in a function of the program's. */
bool threads_begin(void) {
    char *room = threads.room;
    if (thread_me() != &first_thread || vforked()) return false;
    threads.room = NULL;
    sys(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &threads.first_mask, sizeof threads.first_mask, 0, 0);
    altstack_adopt();
    libc(prctl)(PR_GET_NAME, first_thread.name);
    int (*shown)(int, char **) = (int (*)(int, char **))(void (*)(void))program.main;
    int r = is_go() ? -EPERM
                    : core->lead(room, room - stack_limit(), shown, program.argc, program.argv);
    program.refused = r < 0;
    if (r < 0) fprintf(stderr, "gort: threads stay threads: %s\n", reason(r));
    threads.on = r == 0;
    threads.simulated = threads.on && known.simulated;
    if (r == 0) thread_first_begins();
    return r == 0;
}

/* A simulation begins with main: its clocks are not to change while it looks at them. */
static int main_instead(int argc, char **argv, char **env) {
    const char *seed = core->env("GORT_SIM");
    if (seed && *seed) threads_begin();
    return thread_first(program.main, argc, argv, env);
}

bool threads_asked_for(void) {
    if (threads.on || program.refused || core == NULL) return threads.on;
    const char *word = core->env("GORT_THREADS");
    return word && strcmp(word, "1") == 0;
}

HOOK int __libc_start_main(main_fn *fn, int argc, char **argv, step *init, step *fini,
                           step *loader_fini, void *stack_end) {
    ALIGNED(CACHE_LINE) char room[BODY_ROOM];
    start_fn *libcs;
    *(void **)(void *)&libcs = dlsym(RTLD_NEXT, "__libc_start_main");
    if (!threads_asked_for()) return libcs(fn, argc, argv, init, fini, loader_fini, stack_end);
    program.main = fn;
    program.argc = argc;
    program.argv = argv;
    threads.room = room;
    core_found();
    defaults_noted();
    thread_is_first();
    return libcs(main_instead, argc, argv, init, fini, loader_fini, stack_end);
}
