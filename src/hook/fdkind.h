/* What a descriptor is. A number has a kind for each direction (DIR_READ, DIR_WRITE), which decides
 * how a call is tried without blocking. It is a hint (fdhints.h), set where the number is made
 * (create.c, file.c, socket.c) or on its first call (kind_look). */
#ifndef FDKIND_H
#define FDKIND_H

typedef enum FdKind {
    KIND_CLOSED = -1, /* kind_look: not open, errno says why. Never stored */
    KIND_UNKNOWN = 0, /* kind_look asks the kernel */
    KIND_SOCKET,      /* MSG_DONTWAIT */
    KIND_NOWAIT,      /* pipes and their like: preadv2 and pwritev2 with RWF_NOWAIT */
    /* poll(2) first: terminals, devices, writes to an eventfd, what an older kernel cannot try */
    KIND_OTHER,
    /* Called as it is, since it waits for no peer: files, directories, memory devices (/dev/null),
     * what is O_NONBLOCK. For a slow disk the monitor takes the P. */
    KIND_PLAIN,
    /* Called as it is where something is expected there: */
    KIND_HOT,  /* has not blocked for long (optimistic.c) */
    KIND_PIPE, /* a pipe made here, both ends known (fdhints.h) */
    KIND_EVENT /* an eventfd made here, likewise */
} FdKind;

/* The hook counts what goes in and out. */
INLINE bool kind_is_counted(FdKind kind) { return kind >= KIND_PIPE; }

/* What else is known of the number, for both directions. */
typedef enum FdFlags {
    HINT_BORN = 1,      /* a socket made here: the runtime knows nothing of an earlier file */
    HINT_MESSAGES = 2,  /* a socket without connections: connect does not wait */
    HINT_NONBLOCK = 4,  /* its owner has set O_NONBLOCK */
    HINT_OPENED = 8,    /* by open: HOT from the start, as most files never make a reader wait */
    HINT_FRESH = 16,    /* no call has waited on it yet: hint_settle() */
    HINT_ROOM = 32,     /* a pipe's writer: it has not blocked for long */
    HINT_TERMINAL = 64, /* what read does there is termios(3)'s to say (terminal.c) */
    HINT_SIGNALS = 128  /* a signalfd */
} FdFlags;

FdKind kind_look(int fd, int dir); /* asks the kernel, and notes the answer */
bool is_eventfd(int fd);           /* asks the kernel */
bool caller_waits(int fd);         /* likewise: its owner has not set O_NONBLOCK */

#endif
