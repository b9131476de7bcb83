/* All that the library calls of the collector: X(result, name, (arguments)). */
#ifndef CALLS_H
#define CALLS_H

#define EACH_CALL(X)                                                     \
    X(void, GC_init, (void))                                             \
    X(int, GC_is_init_called, (void))                                    \
    X(void, GC_allow_register_threads, (void))                           \
    X(int, GC_register_my_thread, (const Base *))                        \
    X(int, GC_unregister_my_thread, (void))                              \
    X(int, GC_thread_is_registered, (void))                              \
    X(int, GC_get_stack_base, (Base *))                                  \
    X(void, GC_set_stackbottom, (void *thread, const Base *))            \
    X(void, GC_set_on_collection_event, (event_fn *))                    \
    X(event_fn *, GC_get_on_collection_event, (void))                    \
    X(void, GC_set_push_other_roots, (roots_fn *))                       \
    X(roots_fn *, GC_get_push_other_roots, (void))                       \
    X(void, GC_push_all_eager, (void *lo, void *hi))                     \
    X(int, GC_get_suspend_signal, (void))                                \
    X(int, GC_get_thr_restart_signal, (void))                            \
    X(int, GC_get_parallel, (void))                                      \
    X(unsigned long, GC_get_gc_no, (void))                               \
    X(size_t, GC_get_bytes_since_gc, (void))                             \
    X(void, GC_gcollect, (void))                                         \
    X(void *, GC_call_with_alloc_lock, (void *(*fn)(void *), void *arg)) \
    X(void *, GC_malloc_uncollectable, (size_t))                         \
    X(int, GC_is_heap_ptr, (const void *))                               \
    X(void *, GC_base, (void *))                                         \
    X(void, GC_free, (void *))

#endif
