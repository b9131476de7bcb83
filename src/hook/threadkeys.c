/*
 * pthread keys: what libraries keep for each thread is kept for each goroutine.
 *
 * A thread runs many goroutines in the same libraries, and a goroutine may change threads. So a
 * value (OpenSSL's queue of errors, GLib's contexts) is the goroutine's; off goroutines, libc's. A
 * goroutine begins with none; destructors run on its stack before its end is announced, in rounds.
 *
 * The values stand in a table that hangs on the goroutine's stack record, in blocks of 32, both
 * made when a value is set. Only its goroutine touches a table, even in a function of gort_blocking
 * that its runtime has left behind, while another runtime runs, or none.
 *
 * The numbers of keys are libc's. Each has a word here, odd while its values are kept here and new
 * at each creation, so that a value of a deleted key is not found under the next key of that
 * number. The words need no order: the program orders a key's creation, use and deletion.
 *
 * A goroutine that has locked itself to its thread (gort_lock_thread) has come for what is the
 * thread's. A library that finds its object by a __thread variable, and has a key for the
 * destructor only (RocksDB, libomp), must see the object destroyed with the thread, or the next
 * goroutine there finds what is freed. So in between the rule is, key by key:
 *
 *     set by this goroutine outside, and not to NULL since: the goroutine's, also when set inside
 *     any other: the thread's, as in libc, until the thread ends
 *
 * The first half keeps what it brought along, the second is what the library relies on. A value
 * belongs to one side for good: inside, NULL leaves the goroutine's entry there (by its word), so
 * that a library which puts a value aside and back again puts it back where it was. The locks that
 * the hook itself takes for a BOUND mutex (mutex.c) are not the program's, and change nothing.
 *
 * An allocator's keys (made by the object that malloc is in, if that is not libc) remain the
 * thread's: it pairs them with __thread variables, and uses them in malloc (called_by_allocator).
 *
 * Goroutines that still wait when their runtime ends lose their values, and go_abandon frees the
 * table. A goroutine may be stopped for good between any two calls, so a table is hung up whole,
 * and taken off before it is freed. In a forked child the values of its goroutine become libc's.
 */
#include "hook/hook_internal.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>

#define KEYS PTHREAD_KEYS_MAX
#define BLOCK 32

typedef struct Value {
    uint32_t word; /* the key's, when it was set */
    void *value;
} Value;

typedef struct Values {
    Value *block[KEYS / BLOCK];
    uint32_t bound; /* how many of the goroutine's locks to its thread are for BOUND mutexes */
} Values;

static struct {
    uint32_t word; /* atomic, relaxed; odd: its values are goroutines' */
    void (*destroy)(void *);
} keys[KEYS];
static uint32_t keys_end; /* atomic: one above the highest of them that was ever made */

void values_free(void *values) {
    Values *t = values;
    for (uint32_t i = 0; i < count_of(t->block); i++) gort_free(t->block[i]);
    gort_free(t);
}

/* Not by malloc, which may be the caller. */
static void *alloc_empty(size_t size) {
    void *at = gort_alloc(size);
    if (at) __builtin_memset(at, 0, size);
    fence_compiler(); /* zeroed before it is hung up */
    return at;
}

/* NULL: no memory. */
static Values *values_make(Stack *s) {
    if (s->values == NULL) s->values = alloc_empty(sizeof(Values));
    return s->values;
}

static Value *value_make(Stack *s, uint32_t key) {
    Values *t = values_make(s);
    if (t == NULL) return NULL;
    Value **block = &t->block[key / BLOCK];
    if (*block == NULL) *block = alloc_empty(BLOCK * sizeof(Value));
    return *block ? &(*block)[key % BLOCK] : NULL;
}

INLINE Value *value_find(const Values *t, uint32_t key) {
    Value *block = t ? t->block[key / BLOCK] : NULL;
    return block ? &block[key % BLOCK] : NULL;
}

static bool is_allocator(const void *caller) {
    Dl_info by, of;
    void *(*volatile libcs)(size_t) = malloc;
    if (dladdr(caller, &by) == 0 || dladdr((void *)libcs, &of) == 0) return false;
    return by.dli_fbase == of.dli_fbase;
}

/* The library that malloc is in: not libc, nor the program, whose own calls have to park. */
void allocator_find(void) {
    Dl_info of, libcs;
    struct link_map *map;
    void *(*volatile at)(size_t) = malloc;
    if (dladdr1((void *)at, &of, (void **)&map, RTLD_DL_LINKMAP) == 0 || map->l_name[0] == '\0' ||
        dladdr((void *)libc(close), &libcs) == 0 || of.dli_fbase == libcs.dli_fbase)
        return;
    const ElfW(Ehdr) *elf = of.dli_fbase;
    const ElfW(Phdr) *part = (const void *)((const char *)elf + elf->e_phoff);
    known.allocator = map->l_addr;
    for (int i = 0; i < elf->e_phnum; i++)
        if (part[i].p_type == PT_LOAD) known.allocator_size = part[i].p_vaddr + part[i].p_memsz;
}

int key_create(pthread_key_t *key, void (*destroy)(void *), const void *caller) {
    int r = libc(pthread_key_create)(key, destroy);
    if (r != 0 || *key >= KEYS || is_allocator(caller)) return r;
    keys[*key].destroy = destroy;
    store_rlx(&keys[*key].word, (keys[*key].word + 1) | 1);
    uint32_t end = load_rlx(&keys_end);
    while (end <= *key && !cas_seq(&keys_end, &end, *key + 1)) {}
    return 0;
}

HOOK int pthread_key_create(pthread_key_t *key, void (*destroy)(void *)) {
    return key_create(key, destroy, __builtin_return_address(0));
}

HOOK int pthread_key_delete(pthread_key_t key) {
    if (key < KEYS && (keys[key].word & 1)) store_rlx(&keys[key].word, keys[key].word + 1);
    return libc(pthread_key_delete)(key);
}

/* The goroutine that keeps the key's value; NULL: libc keeps it, also for one that is a thread to
 * it (sched/body.c). */
INLINE G *key_owner(M *m, pthread_key_t key) {
    if (m == NULL || unlikely(key >= KEYS) || unlikely(!(load_rlx(&keys[key].word) & 1)))
        return NULL;
    return has_body(m->curg) ? NULL : m->curg;
}

void values_bound(int more) {
    Values *t = values_make(runner_g()->stack);
    if (t) t->bound += (uint32_t)more;
}

/* The program has locked it to its thread. */
static bool is_locked(const G *gp) {
    const Values *t = gp->stack->values;
    return gp->lock_depth > (t ? t->bound : 0);
}

/* The goroutine has no value. */
static NOINLINE void *value_of_thread(const G *gp, const Value *v, pthread_key_t key) {
    bool own = v && v->word == load_rlx(&keys[key].word);
    return own || !is_locked(gp) ? NULL : libc(pthread_getspecific)(key);
}

HOOK void *pthread_getspecific(pthread_key_t key) {
    G *gp = key_owner(runner_at(real.pthread_getspecific.tls), key);
    if (gp == NULL) return libc(pthread_getspecific)(key);
    Value *v = value_find(gp->stack->values, key);
    if (likely(v && v->value && v->word == load_rlx(&keys[key].word))) return v->value;
    return likely(gp->lock_depth == 0) ? NULL : value_of_thread(gp, v, key);
}

/* It has no room for that key's value, or is locked to its thread. */
static NOINLINE int value_set(G *gp, Value *v, pthread_key_t key, uintptr_t value) {
    uint32_t word = load_rlx(&keys[key].word);
    bool locked = is_locked(gp), own = v && v->word == word;
    if (locked && !own) return libc(pthread_setspecific)(key, (void *)value);
    if (v == NULL && value == 0) return 0;
    if (v == NULL && hook_in_child()) return libc(pthread_setspecific)(key, (void *)value);
    if (v == NULL && (v = value_make(gp->stack, key)) == NULL) return ENOMEM;
    *v = (Value){value || locked ? word : 0, (void *)value};
    return 0;
}

HOOK int pthread_setspecific(pthread_key_t key, const void *value) {
    G *gp = key_owner(runner_at(real.pthread_setspecific.tls), key);
    if (gp == NULL) return libc(pthread_setspecific)(key, value);
    Value *v = value_find(gp->stack->values, key);
    if (unlikely(v == NULL) || unlikely(gp->lock_depth > 0))
        return value_set(gp, v, key, (uintptr_t)value);
    *v = (Value){value ? load_rlx(&keys[key].word) : 0, (void *)(uintptr_t)value};
    return 0;
}

static bool destroy_value(Value *v, uint32_t key) {
    void *value = v->value;
    if (value == NULL || v->word != load_rlx(&keys[key].word)) return false;
    v->value = NULL;
    if (keys[key].destroy == NULL) return false;
    keys[key].destroy(value);
    return true;
}

/* True: destructors have run, and may have set values. */
static bool destroy_round(Values *t) {
    bool any = false;
    for (uint32_t key = 0; key < load_rlx(&keys_end); key++) {
        Value *v = value_find(t, key);
        if (v) any |= destroy_value(v, key);
    }
    return any;
}

void values_run_out(void) {
    Stack *s = runner_g()->stack;
    Values *t = s->values;
    for (int i = 0; i < PTHREAD_DESTRUCTOR_ITERATIONS && destroy_round(t); i++) {}
    s->values = NULL;
    values_free(t);
}

void values_to_thread(void *values) {
    for (uint32_t key = 0; key < load_rlx(&keys_end); key++) {
        Value *v = value_find(values, key);
        if (v && v->value && v->word == load_rlx(&keys[key].word))
            libc(pthread_setspecific)(key, v->value);
    }
}

/* The current thread's value, which it has no more; NULL: none. */
static void *value_taken(uint32_t key) {
    void *value = load_rlx(&keys[key].word) & 1 ? libc(pthread_getspecific)(key) : NULL;
    if (value) libc(pthread_setspecific)(key, NULL);
    return value;
}

bool keys_destroy_round(void) {
    bool any = false;
    for (uint32_t key = 0; key < load_rlx(&keys_end); key++) {
        void *value = value_taken(key);
        if (value == NULL || keys[key].destroy == NULL) continue;
        any = true;
        keys[key].destroy(value);
    }
    return any;
}

void keys_drop(void) {
    for (uint32_t key = 0; key < load_rlx(&keys_end); key++) value_taken(key);
}
