/*
 * Atomics with the memory order in the name, so that it is read where it is used.
 *
 *   load_rlx / store_rlx     no ordering: counters, hints, fields that a lock orders anyway
 *   load_acq / store_rel     message passing; the comment names the partner
 *   fence_full               the Dekker pairs (wake.c); nothing weaker will do there
 *   fence_after_rmw          the same right behind a read-modify-write of this thread
 *   fence_loads              what was read before is not read later: the end of a copy
 *   fence_stores             what is written later is not seen before: what is copied is replaced
 *   xchg_*, cas_*, add_*     read-modify-write
 *   *_own                    the same by the only thread that writes the word
 */
#ifndef ATOMIC_H
#define ATOMIC_H

#include "base/base.h"

#define load_rlx(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acq(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define load_seq(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define store_rlx(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_rel(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define store_seq(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)

#define xchg_acq(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE)
#define xchg_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_RELEASE)
#define xchg_seq(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)

#define add_rlx(p, v) __atomic_add_fetch((p), (v), __ATOMIC_RELAXED)
#define add_seq(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
#define sub_rlx(p, v) __atomic_sub_fetch((p), (v), __ATOMIC_RELAXED)
#define sub_seq(p, v) __atomic_sub_fetch((p), (v), __ATOMIC_SEQ_CST)
#define or_acq(p, v) __atomic_fetch_or((p), (v), __ATOMIC_ACQUIRE)
#define or_seq(p, v) __atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define and_seq(p, v) __atomic_fetch_and((p), (v), __ATOMIC_SEQ_CST)

/* Compare and swap; on failure *expect holds what was found. */
#define cas_acq(p, expect, v) \
    __atomic_compare_exchange_n((p), (expect), (v), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
#define cas_rel(p, expect, v) \
    __atomic_compare_exchange_n((p), (expect), (v), false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
#define cas_acq_rel(p, expect, v) \
    __atomic_compare_exchange_n((p), (expect), (v), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define cas_seq(p, expect, v) \
    __atomic_compare_exchange_n((p), (expect), (v), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

#define fence_full() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define fence_loads() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define fence_stores() __atomic_thread_fence(__ATOMIC_RELEASE)
/* On x86-64 a read-modify-write is a full fence by itself. On aarch64 without LSE it is a loop of
 * an acquiring load and a releasing store, and a later load may come before that store. */
#ifdef __x86_64__
#define fence_after_rmw() fence_compiler()
#else
#define fence_after_rmw() fence_full()
#endif
#define fence_compiler() __asm__ volatile("" ::: "memory")

/* A word that one thread writes at a time and others read: no locked instruction, and on x86-64 a
 * single one, which compilers do not make of a load and a store. */
#ifdef __x86_64__
#define OWN(op, p, n, ...) __asm__(op : "+m"(*(p)) : "er"((__typeof__(*(p)))(n))__VA_ARGS__)
#define add_own(p, n)                                   \
    do { /* of 8 bytes or 4 */                          \
        if (sizeof *(p) == 8) OWN("addq %1, %0", p, n); \
        else OWN("addl %1, %0", p, n);                  \
    } while (0)
#define sub_own_rel(p, n)                               \
    do {                                                \
        _Static_assert(sizeof *(p) == 4, "of 4 bytes"); \
        OWN("subl %1, %0", p, n, : "memory");           \
    } while (0)
#else
#define add_own(p, n) store_rlx((p), load_rlx(p) + (n))
#define sub_own_rel(p, n) store_rel((p), load_rlx(p) - (n))
#endif
#define bump(p, n) add_own(p, n) /* a counter, which decides nothing */

#endif
