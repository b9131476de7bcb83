/* A scene as it was drawn: numbers of words. */
#ifndef WHOLE_SCENE_H
#define WHOLE_SCENE_H

#include "whole.h"

enum { PROCS, DEBUG, UNDER, BACK, END, WHEN, ENVS };

typedef struct Role {
    int start, wraps[WRAPS], act, ender, noise, leave; /* wraps: -1: none */
    int crowd, n;                                      /* -1: none */
} Role;

typedef struct Scene {
    uint64_t seed;
    int env[ENVS], nroles;
    Role roles[PLAYERS];
} Scene;

void role_words(const Role *, char *text, size_t size);
int scene_play(Scene *);

#endif
