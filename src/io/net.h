/* Sockets that the end of the runtime closes, until a caller owns them: net.c. */
#ifndef NET_H
#define NET_H

#include "sched/goexit.h"

typedef struct Socket {
    ExitHook hook;
    int fd;
} Socket;

/* As gort_listen, but the number belongs to s until socket_over. Outside of sections. */
int socket_listen(Socket *s, const char *addr, int backlog);
void socket_away(Socket *s); /* to a number out of the way, where one is free */
/* The number becomes the caller's, or is closed where r is an error: the number, or r. */
int socket_over(Socket *s, int r);

#endif
