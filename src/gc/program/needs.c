/*
 * libgort-gc.a: what goroutines need of the Boehm collector, by name. The support is in the library
 * (boehm.c) and refers to the collector weakly, so that the order of libraries does not matter. But
 * a weak reference takes nothing out of a static libgc.a, and is silent where the collector is too
 * old. With the references here a program has all of it or does not link.
 */
#define GC_THREADS 1
#include <gc.h>
#include <gc/gc_mark.h>

typedef void anything(void);
extern anything *const gort_gc_needs[];
__attribute__((visibility("default"), used)) anything *const gort_gc_needs[] = {
    (anything *)GC_init,
    (anything *)GC_is_init_called,
    (anything *)GC_allow_register_threads,
    (anything *)GC_register_my_thread,
    (anything *)GC_unregister_my_thread,
    (anything *)GC_thread_is_registered,
    (anything *)GC_get_stack_base,
    (anything *)GC_set_stackbottom,
    (anything *)GC_set_on_collection_event,
    (anything *)GC_get_on_collection_event,
    (anything *)GC_set_push_other_roots,
    (anything *)GC_get_push_other_roots,
    (anything *)GC_push_all_eager,
    (anything *)GC_get_suspend_signal,
    (anything *)GC_get_thr_restart_signal,
    (anything *)GC_get_parallel,
    (anything *)GC_get_gc_no,
    (anything *)GC_get_bytes_since_gc,
    (anything *)GC_gcollect,
    (anything *)GC_call_with_alloc_lock,
    (anything *)GC_malloc_uncollectable,
    (anything *)GC_is_heap_ptr,
    (anything *)GC_base,
    (anything *)GC_free,
};
/* The library knows the events by number. */
_Static_assert(GC_EVENT_PRE_STOP_WORLD == 6 && GC_EVENT_POST_START_WORLD == 9, "boehm.c");
