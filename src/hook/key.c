/*
 * What a library keeps for each thread, while a goroutine is away from its own.
 *
 * A goroutine that waits in a hooked call comes back to its thread (soft.c), but the thread runs
 * others meanwhile, in the same libraries. What is kept under a pthread key (OpenSSL's queue of
 * errors, GLib's default contexts) would be shared by all of them, and what one left there before
 * its call would be another's after it. So it goes with the goroutine: just before it parks
 * the values of this thread's keys are taken out (keys_out), and when it is back they are put in
 * again (keys_in), on whatever thread that is. In between the thread has none, as a new thread.
 * (What C++ notes about exceptions that are being handled goes along with every switch: switch.h.)
 *
 * Whoever is back may find a value there: of a goroutine that ended, or waits in a call of gort's
 * own. It is kept as a spare and given to the next thread that is left empty. So there are never
 * more values than there were goroutines at once, as with a pool of threads, and nothing is
 * destroyed that somebody may still use; only where there are SPARES already, one is destroyed as by
 * the end of its thread.
 *
 * Not around code of the program (pthread_once), which is to find and to leave its own.
 *
 * The tables are words, each taken and given by one atomic instruction. Of a key: 0 free,
 * CLAIMED while its destructor is noted, key + 1. Deleting a key that another thread uses is a mistake
 * of the program, here as elsewhere. Of very many keys the first 64 go along, of very many values the first
 * 12; __thread variables cannot.
 */
#include "inside.h"

#define KEYS_MOST 64
#define SPARES 256
#define CLAIMED UINT32_MAX

typedef struct Slot {
    uint32_t key;           /* atomic; release after the destructor: keys_in reads it */
    void (*destroy)(void *);
    uint32_t spares;        /* atomic hint: there may be some */
    void *spare[SPARES];    /* atomic each */
} Slot;

static Slot keys[KEYS_MOST];
static uint32_t keys_used; /* atomic: so many keys, from the first, have ever been used */

HOOK int pthread_key_create(pthread_key_t *key, void (*destroy)(void *)) {
    int r = libc(pthread_key_create)(key, destroy);
    for (uint32_t i = 0; i < KEYS_MOST && r == 0; i++) {
        uint32_t none = 0, used = load_rlx(&keys_used);
        if (load_rlx(&keys[i].key) != 0 || !cas_seq(&keys[i].key, &none, CLAIMED)) continue;
        keys[i].destroy = destroy;
        store_rel(&keys[i].key, *key + 1);
        while (used < i + 1 && !cas_seq(&keys_used, &used, i + 1)) {
        }
        break;
    }
    return r;
}

HOOK int pthread_key_delete(pthread_key_t key) {
    for (uint32_t i = 0; i < load_rlx(&keys_used); i++) {
        if (load_rlx(&keys[i].key) != key + 1) continue;
        for (int k = 0; k < SPARES; k++) store_rlx(&keys[i].spare[k], NULL); /* the program's, as all values */
        store_rlx(&keys[i].spares, 0);
        store_rel(&keys[i].key, 0);
    }
    return libc(pthread_key_delete)(key);
}

static void *take_spare(Slot *s) {
    if (load_rlx(&s->spares) == 0) return NULL;
    for (int k = 0; k < SPARES; k++) {
        void *value = load_rlx(&s->spare[k]) ? xchg_seq(&s->spare[k], NULL) : NULL;
        if (value) return value;
    }
    store_rlx(&s->spares, 0); /* one that comes at this moment waits for the next */
    return NULL;
}

static void keep_spare(Slot *s, void *value) {
    for (int k = 0; k < SPARES; k++) {
        void *none = NULL;
        if (load_rlx(&s->spare[k]) != NULL || !cas_seq(&s->spare[k], &none, value)) continue;
        store_rlx(&s->spares, 1);
        return;
    }
    if (s->destroy) s->destroy(value);
}

NOINLINE void keys_out(Stay *s) {
    uint32_t used = load_rlx(&keys_used);
    for (uint32_t i = 0; i < used && s->n < KEPT_MOST; i++) {
        uint32_t key = load_acq(&keys[i].key);
        if (key == 0 || key == CLAIMED) continue;
        void *value = pthread_getspecific(key - 1);
        if (value == NULL) continue;
        s->kept[s->n++] = (Kept){i, key, value};
        pthread_setspecific(key - 1, take_spare(&keys[i]));
    }
}

NOINLINE void keys_in(const Stay *s) {
    for (uint32_t k = 0; k < s->n; k++) {
        Slot *slot = &keys[s->kept[k].slot];
        uint32_t key = s->kept[k].key;
        if (load_acq(&slot->key) != key) continue; /* deleted meanwhile */
        void *left = pthread_getspecific(key - 1);
        pthread_setspecific(key - 1, s->kept[k].value);
        if (left) keep_spare(slot, left);
    }
}
