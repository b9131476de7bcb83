/*
 * A program begins: GORT_THREADS=1, and the hook is preloaded.
 *
 * The program's first code calls libc's __libc_start_main, which stands here first, and gets
 * another main. When that is called, libraries are loaded and constructors have run, as this
 * thread. It becomes goroutine 1 (core->run_main), with its descriptor and variables, on a stack as
 * large as the limit. Where that cannot be, main runs as ever, and a line says so.
 */
#include "threads/threads.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

typedef int main_fn(int, char **, char **);
typedef void step(void);
typedef int start_fn(main_fn *fn, int argc, char **argv, step *init, step *fini, step *loader_fini,
                     void *stack_end);
start_fn __libc_start_main;

static struct {
    main_fn *main;
    int argc;
    char **argv;
    bool begun; /* or is about to */
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

static void *main_life(void *arg) { exit(program.main(program.argc, program.argv, environ)); }

static int program_goroutine(int argc, char **argv) {
    threads.on = true;
    thread_main_begins(main_life, NULL);
}

static int main_instead(int argc, char **argv, char **env) {
    pthread_attr_t attr;
    program.argc = argc;
    program.argv = argv;
    core_found();
    pthread_attr_init(&attr);
    pthread_attr_getstacksize(&attr, &threads.stack_size);
    pthread_attr_destroy(&attr);
    program.begun = true;
    int r = core ? core->run_main(threads.stack_size, program_goroutine, argc, argv) : -ENOTSUP;
    fprintf(stderr, "gort: threads stay threads: %s\n",
            r == -ENOTSUP ? "this libc or machine is not known" : strerror(-r));
    return program.main(argc, argv, env);
}

bool threads_asked_for(void) {
    const char *word = getenv("GORT_THREADS");
    return threads.on || (!program.begun && word && strcmp(word, "1") == 0);
}

HOOK int __libc_start_main(main_fn *fn, int argc, char **argv, step *init, step *fini,
                           step *loader_fini, void *stack_end) {
    start_fn *libcs;
    *(void **)(void *)&libcs = dlsym(RTLD_NEXT, "__libc_start_main");
    program.main = fn;
    return libcs(threads_asked_for() ? main_instead : fn, argc, argv, init, fini, loader_fini,
                 stack_end);
}
