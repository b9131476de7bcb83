/* A scene as it is written down: a word of each kind for all, and roles. */
#ifndef GORT_PRODUCT_SCENE_H
#define GORT_PRODUCT_SCENE_H

#include "product.h"

enum { PROCS, DEBUG, LOOK, CROWD, DIRECTOR, HANDLER, ENDING, CLOCK, ENVS };
/* of these kinds, what more than a table has to know */
enum { PAGE = 4, PROFILED };
enum { E_RETURN, E_EXIT, E_INT, E_TERM, E_ABORT, E_SEGV, E_QUIT };

typedef struct Role {
    int start, wraps[WRAPS], act, ender, noise, leave; /* a wrap below 0: none */
} Role;

typedef struct Scene {
    int env[ENVS], nroles;
    Role roles[PLAYERS];
    uint64_t seed;
} Scene;

void role_words(const Role *, char *text, size_t size);
int scene_play(Scene *);

#endif
