/*
 * pthread keys: what libraries keep for each thread is kept for each goroutine.
 *
 * A thread runs many goroutines in the same libraries, and a goroutine may change threads. What is
 * kept under a key (OpenSSL's queue of errors, GLib's contexts, libcurl's state) has to be found by
 * the one that left it and by nobody else. So on a goroutine a value is the goroutine's: it begins
 * with none, and when it ends its destructors run, on its own stack, before whoever waits for it
 * hears of its end; in rounds, as POSIX has it. Off goroutines everything is libc's.
 *
 * The values stand in a table that hangs on the goroutine's stack record, made when the first is
 * set: blocks of 32, as they are needed, so that a goroutine without keys pays nothing. Only its
 * goroutine touches a table, wherever it is: also in a function of gort_blocking that its runtime
 * has left behind, while another runtime runs, or none.
 *
 * The numbers of keys are libc's. Each has a word here: odd while its values are kept here, another
 * one each time, so that what was left under a key that is deleted is not found under the next of
 * that number. A key is used after its creation and not after its deletion, by the program's own
 * order, so the words need none.
 *
 * The keys of an allocator remain the thread's: it pairs them with __thread variables, and calls us
 * inside malloc. Its keys are those that are made by the object which malloc is in, if that is not
 * libc.
 *
 * Goroutines that still wait when their runtime ends never run again: their values are lost, as a
 * process's that exits, and whoever buries the goroutine frees its table (go_abandon): the end of
 * the runtime, or the thread that was left behind with it, when it comes back. A goroutine may be
 * stopped for good between any two calls of ours: so a table is hung up whole, and taken off before
 * it is freed. A forked child goes on as the thread that it has: what its goroutine had is libc's
 * from there on.
 */
#include "hook/hook_internal.h"

#include <dlfcn.h>
#include <limits.h>

#define KEYS PTHREAD_KEYS_MAX
#define BLOCK 32

typedef struct Value {
    uint32_t word; /* the key's, when it was set */
    void *value;
} Value;

typedef struct Values {
    Value *block[KEYS / BLOCK];
} Values;

static struct {
    uint32_t word; /* atomic, relaxed; odd: its values are goroutines' */
    void (*destroy)(void *);
} keys[KEYS];

/* ---- tables ---------------------------------------------------------------------------------- */

void values_free(void *values) {
    Values *t = values;
    for (uint32_t i = 0; i < count_of(t->block); i++) gort_free(t->block[i]);
    gort_free(t);
}

/* Not malloc's, which may be who asks. */
static void *alloc_empty(size_t size) {
    void *at = gort_alloc(size);
    if (at) __builtin_memset(at, 0, size);
    fence_compiler(); /* whole, before it is hung up */
    return at;
}

static Value *value_make(Stack *s, uint32_t key) {
    if (s->values == NULL) s->values = alloc_empty(sizeof(Values));
    if (s->values == NULL) return NULL;
    Value **block = &((Values *)s->values)->block[key / BLOCK];
    if (*block == NULL) *block = alloc_empty(BLOCK * sizeof(Value));
    return *block ? &(*block)[key % BLOCK] : NULL;
}

INLINE Value *value_find(G *gp, uint32_t key) {
    Values *t = gp->stack->values;
    Value *block = t ? t->block[key / BLOCK] : NULL;
    return block ? &block[key % BLOCK] : NULL;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool allocators(const void *caller) {
    Dl_info by, of;
    void *(*volatile libcs)(size_t) = malloc;
    if (dladdr(caller, &by) == 0 || dladdr((void *)libcs, &of) == 0) return false;
    return by.dli_fbase == of.dli_fbase;
}

HOOK int pthread_key_create(pthread_key_t *key, void (*destroy)(void *)) {
    int r = libc(pthread_key_create)(key, destroy);
    if (r != 0 || *key >= KEYS || allocators(__builtin_return_address(0))) return r;
    keys[*key].destroy = destroy;
    store_rlx(&keys[*key].word, (keys[*key].word + 1) | 1);
    return 0;
}

HOOK int pthread_key_delete(pthread_key_t key) {
    if (key < KEYS && (keys[key].word & 1)) store_rlx(&keys[key].word, keys[key].word + 1);
    return libc(pthread_key_delete)(key);
}

/* The goroutine whose value it is; NULL: it is libc's. */
INLINE G *whose(M *m, pthread_key_t key) {
    if (m == NULL || unlikely(key >= KEYS) || unlikely(!(load_rlx(&keys[key].word) & 1)))
        return NULL;
    return m->curg;
}

HOOK void *pthread_getspecific(pthread_key_t key) {
    G *gp = whose(runner(pthread_getspecific), key);
    if (gp == NULL) return libc(pthread_getspecific)(key);
    Value *v = value_find(gp, key);
    return v && v->word == load_rlx(&keys[key].word) ? v->value : NULL;
}

HOOK int pthread_setspecific(pthread_key_t key, const void *value) {
    G *gp = whose(runner(pthread_setspecific), key);
    if (gp == NULL) return libc(pthread_setspecific)(key, value);
    Value *v = value_find(gp, key);
    if (v == NULL && value == NULL) return 0;
    if (v == NULL && elsewhere()) return libc(pthread_setspecific)(key, value);
    if (v == NULL && (v = value_make(gp->stack, key)) == NULL) return ENOMEM;
    *v = (Value){load_rlx(&keys[key].word), (void *)(uintptr_t)value};
    return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool destroy_value(Value *v, uint32_t key) {
    void *value = v->value;
    if (value == NULL || v->word != load_rlx(&keys[key].word)) return false;
    v->value = NULL;
    if (keys[key].destroy == NULL) return false;
    keys[key].destroy(value);
    return true;
}

/* True: destructors have run, and may have left something. */
static bool destroy_round(Values *t) {
    bool any = false;
    for (uint32_t key = 0; key < KEYS; key++) {
        Value *block = t->block[key / BLOCK];
        if (block) any |= destroy_value(&block[key % BLOCK], key);
    }
    return any;
}

void values_run_out(void) {
    Stack *s = current_g()->stack;
    Values *t = s->values;
    for (int i = 0; i < PTHREAD_DESTRUCTOR_ITERATIONS && destroy_round(t); i++) {}
    s->values = NULL;
    values_free(t);
}

void values_to_thread(void *values) {
    Values *t = values;
    for (uint32_t key = 0; key < KEYS; key++) {
        Value *v = t->block[key / BLOCK] ? &t->block[key / BLOCK][key % BLOCK] : NULL;
        if (v && v->value && v->word == load_rlx(&keys[key].word))
            libc(pthread_setspecific)(key, v->value);
    }
}
