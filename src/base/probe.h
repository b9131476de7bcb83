/*
 * USDT probes: places where bpftrace, perf, systemtap and gdb can look on.
 *
 *     bpftrace -e 'usdt:./server:gort:block { @[arg1] = count(); }'
 *
 * A probe is a nop: until a tool attaches, that is its whole cost. An ELF note of type 3 by
 * "stapsdt", not loaded with the program, describes it as systemtap's <sys/sdt.h> does: the
 * address, that of .stapsdt.base (which tells how far the file was moved), a semaphore (none),
 * provider, name, and for each argument where it lies, as "SIZE@OPERAND".
 */
#ifndef PROBE_H
#define PROBE_H

#include <stdint.h>

#if !defined(GORT_NO_PROBES) && (defined(__x86_64__) || defined(__aarch64__))

#ifdef __clang__
#define PROBE_WHERE "r" /* else it stores the value to have it in memory */
#else
#define PROBE_WHERE "nor"
#endif

#define PROBE_NOTE(name, args)                                            \
    "990: nop\n"                                                          \
    ".pushsection .note.stapsdt,\"?\",%%note\n"                           \
    ".balign 4\n"                                                         \
    ".4byte 992f-991f, 994f-993f, 3\n"                                    \
    "991: .asciz \"stapsdt\"\n"                                           \
    "992: .balign 4\n"                                                    \
    "993: .8byte 990b, _.stapsdt.base, 0\n"                               \
    ".asciz \"gort\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n"         \
    "994: .balign 4\n"                                                    \
    ".popsection\n"                                                       \
    ".ifndef _.stapsdt.base\n"                                            \
    ".pushsection .stapsdt.base,\"aG\",%%progbits,.stapsdt.base,comdat\n" \
    ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                      \
    "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"                 \
    ".popsection\n"                                                       \
    ".endif\n"

/* Arguments are of 64 bits. */
#define PROBE1(name, a) __asm__ volatile(PROBE_NOTE(#name, "8@%0")::PROBE_WHERE((uint64_t)(a)))
#define PROBE2(name, a, b)                                                       \
    __asm__ volatile(PROBE_NOTE(#name, "8@%0 8@%1")::PROBE_WHERE((uint64_t)(a)), \
                     PROBE_WHERE((uint64_t)(b)))

#else
#define PROBE1(name, a) ((void)(a))
#define PROBE2(name, a, b) ((void)(a), (void)(b))
#endif

#endif
