/*
 * A trace as Perfetto's own packets, which ui.perfetto.dev opens: a tenth of the JSON and less.
 *
 * The file is a protobuf message `Trace`: TracePackets in compressed groups of 64 KB. The
 * numbers of the fields are those of the definitions in Perfetto's repository. All packets are
 * one sequence in the order of time: a time stamp is the ns since the packet before (a clock of
 * our own, set by the first packet), and a name is written once and has a number from then on.
 *
 *   processors   a track for each P: a slice is a goroutine on that P; its args say which (g) and
 *                how it ended (end). An instant "wake" is where a goroutine became runnable, and
 *                the beginning of a flow that ends at its next slice; the flow's id is g.
 *   threads      a track for each M with its blocking calls.
 *   runtime      stop-the-world, wake-ups by threads without a P, and the sums at the end.
 *   regions      a track for each goroutine that has some.
 *
 * A slice that begins on a track where one is open ends that one first, so no two overlap, whatever
 * was lost. As trace_write.c: mmap and write(2) only.
 */
#include "inspect/deflate.h"
#include "inspect/trace_form.h"
#include "os/os.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>

/* ---- numbers of the fields ------------------------------------------------------------------- */

enum { TRACE_PACKET = 1 }; /* Trace */
enum {                     /* TracePacket */
       PACKET_CLOCK_SNAPSHOT = 6,
       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE_ID = 10,
       PACKET_TRACK_EVENT = 11,
       PACKET_INTERNED_DATA = 12,
       PACKET_SEQUENCE_FLAGS = 13,
       PACKET_COMPRESSED = 50,
       PACKET_DEFAULTS = 59,
       PACKET_TRACK_DESCRIPTOR = 60
};
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 }; /* TracePacket.SequenceFlags */
enum { DEFAULTS_CLOCK_ID = 58 };             /* TracePacketDefaults */
enum { SNAPSHOT_CLOCKS = 1 };                /* ClockSnapshot */
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2, CLOCK_IS_INCREMENTAL = 3 }; /* ClockSnapshot.Clock */
enum { REALTIME = 1, MONOTONIC = 3, BOOTTIME = 6, OURS = 64 }; /* BuiltinClock, and our own */
enum {                                                         /* TrackDescriptor */
       TRACK_UUID = 1,
       TRACK_NAME = 2,
       TRACK_PROCESS = 3,
       TRACK_PARENT = 5,
       TRACK_CHILD_ORDERING = 11,
       TRACK_RANK = 12
};
enum { ORDERING_EXPLICIT = 3 };             /* TrackDescriptor.ChildTracksOrdering */
enum { PROCESS_PID = 1, PROCESS_NAME = 6 }; /* ProcessDescriptor */
enum {                                      /* TrackEvent */
       EVENT_CATEGORY = 3,
       EVENT_ANNOTATION = 4,
       EVENT_TYPE = 9,
       EVENT_NAME = 10,
       EVENT_TRACK = 11,
       EVENT_FLOW = 47,            /* fixed64 */
       EVENT_TERMINATING_FLOW = 48 /* fixed64 */
};
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 }; /* TrackEvent.Type */
/* DebugAnnotation */
enum { ANNOTATION_NAME = 1, ANNOTATION_UINT = 3, ANNOTATION_STRING_IID = 17 };
enum { /* InternedData */
       INTERNED_CATEGORIES = 1,
       INTERNED_NAMES = 2,
       INTERNED_ANNOTATION_NAMES = 3,
       INTERNED_STRINGS = 29
};
enum { INTERNED_IID = 1, INTERNED_TEXT = 2 }; /* of each of them */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2 }; /* wire types */

/* Tracks. A P's, a thread's and a goroutine's have their number added. */
enum { PROGRAM = 1, PROCESSORS, THREADS, RUNTIME, REGIONS, FIRST_P = 16 };
#define FIRST_THREAD (1ULL << 16)
#define FIRST_REGIONS (1ULL << 32)
#define MOST_THREADS (1u << 20)

/* ---- messages -------------------------------------------------------------------------------- */

#define TEXT_MOST 200 /* bytes of a name that are kept */
typedef struct Message {
    size_t n;
    uint8_t data[1024];
} Message;

static void add_varint(Message *m, uint64_t v) {
    for (; v >= 128; v >>= 7) m->data[m->n++] = (uint8_t)(v | 128);
    m->data[m->n++] = (uint8_t)v;
}

static void add_tag(Message *m, unsigned field, unsigned wire) { add_varint(m, field << 3 | wire); }

static void add_uint(Message *m, unsigned field, uint64_t v) {
    add_tag(m, field, VARINT);
    add_varint(m, v);
}

static void add_fixed64(Message *m, unsigned field, uint64_t v) {
    add_tag(m, field, FIXED64);
    for (int i = 0; i < 8; i++, v >>= 8) m->data[m->n++] = (uint8_t)v;
}

/* What does not fit is left out: only many new names in one packet could. */
static void add_bytes(Message *m, unsigned field, const void *s, size_t n) {
    if (m->n + n + 8 > sizeof m->data) return;
    add_tag(m, field, BYTES);
    add_varint(m, n);
    memcpy(m->data + m->n, s, n);
    m->n += n;
}

static void add_text(Message *m, unsigned field, const char *s) {
    char some[TEXT_MOST + 1], buf[4 * TEXT_MOST];
    Out o = OUT(-1, buf);
    copy_name(some, sizeof some, s);
    out_plain(&o, some); /* readers want UTF-8 */
    add_bytes(m, field, buf, o.used);
}

static void add_message(Message *m, unsigned field, const Message *inner) {
    add_bytes(m, field, inner->data, inner->n);
}

/* ---- the file -------------------------------------------------------------------------------- */

typedef struct Interned {
    uint64_t key; /* a hash of the text and the field; 0: free */
    uint64_t iid;
} Interned;

typedef struct Perfetto {
    uint64_t last; /* ns of the last packet */
    Message fresh; /* InternedData for the next packet */
    Interned *table;
    uint64_t capacity, used;
    uint64_t iids[INTERNED_STRINGS + 1]; /* given out, by field */
    uint8_t ps[MAX_PROCS];               /* TRACK_... */
    uint8_t threads[MOST_THREADS];       /* a page at a time becomes memory */
    uint8_t runtime;
    size_t raw_used;
    uint8_t raw[DEFLATE_MOST];
    uint8_t packed[DEFLATE_ROOM];
    Deflate deflate;
} Perfetto;
enum { UNSEEN, CLOSED, OPEN_SLICE }; /* of a track */

static void write_group(TraceWriter *w) {
    Perfetto *f = w->more;
    if (f->raw_used == 0) return;
    size_t n = deflate_block(&f->deflate, f->raw, f->raw_used, f->packed);
    Message head = {0}, inner = {0};
    add_tag(&inner, PACKET_COMPRESSED, BYTES);
    add_varint(&inner, n);
    add_tag(&head, TRACE_PACKET, BYTES);
    add_varint(&head, inner.n + n);
    memcpy(head.data + head.n, inner.data, inner.n);
    int fd = w->out.fd;
    int r = w->out.failed ? w->out.failed : write_all(fd, (char *)head.data, head.n + inner.n);
    w->out.failed = r ? r : write_all(fd, (char *)f->packed, n);
    f->raw_used = 0;
}

static void write_packet(TraceWriter *w, const Message *packet) {
    Perfetto *f = w->more;
    Message head;
    head.n = 0;
    add_tag(&head, TRACE_PACKET, BYTES);
    add_varint(&head, packet->n);
    if (f->raw_used + head.n + packet->n > sizeof f->raw) write_group(w);
    memcpy(f->raw + f->raw_used, head.data, head.n);
    memcpy(f->raw + f->raw_used + head.n, packet->data, packet->n);
    f->raw_used += head.n + packet->n;
}

/* Ticks as ns since the beginning of the trace. */
static uint64_t ns_of(const TraceWriter *w, uint64_t ticks) {
    uint64_t first = w->source->first_tick;
    return ticks > first ? (uint64_t)((double)(ticks - first) * w->source->ns_per_tick) : 0;
}

/* The time first, since it alone differs: the rest is what an earlier packet said. */
static void write_event(TraceWriter *w, uint64_t ticks, const Message *event) {
    Perfetto *f = w->more;
    uint64_t ns = ns_of(w, ticks);
    Message packet;
    packet.n = 0;
    add_uint(&packet, PACKET_TIMESTAMP, ns > f->last ? ns - f->last : 0);
    add_uint(&packet, PACKET_SEQUENCE_ID, 1);
    add_uint(&packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
    if (event->n + f->fresh.n + 32 > sizeof packet.data) { /* the names in a packet of their own */
        Message names;
        names.n = 0;
        add_uint(&names, PACKET_SEQUENCE_ID, 1);
        add_uint(&names, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
        add_message(&names, PACKET_INTERNED_DATA, &f->fresh);
        write_packet(w, &names);
        f->fresh.n = 0;
    }
    add_message(&packet, PACKET_TRACK_EVENT, event);
    if (f->fresh.n) add_message(&packet, PACKET_INTERNED_DATA, &f->fresh);
    f->fresh.n = 0;
    if (ns > f->last) f->last = ns;
    write_packet(w, &packet);
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint64_t key_of(unsigned field, const char *s) {
    uint64_t h = 0xcbf29ce484222325ULL ^ field; /* FNV-1a */
    for (size_t i = 0; i < TEXT_MOST && s[i]; i++) h = (h ^ (uint8_t)s[i]) * 0x100000001b3ULL;
    return h ? h : 1;
}

static Interned *interned_at(const Perfetto *f, uint64_t key) {
    uint64_t i = (key * 0x9E3779B97F4A7C15ULL >> 20) & (f->capacity - 1);
    while (f->table[i].key && f->table[i].key != key) i = (i + 1) & (f->capacity - 1);
    return &f->table[i];
}

static bool interned_grow(Perfetto *f, uint64_t capacity) {
    Interned *old = f->table;
    uint64_t n = f->capacity;
    Interned *fresh = os_map(capacity * sizeof *fresh, false);
    if (fresh == NULL) return false;
    f->table = fresh;
    f->capacity = capacity;
    for (uint64_t i = 0; i < n; i++)
        if (old[i].key) *interned_at(f, old[i].key) = old[i];
    if (old) os_unmap(old, n * sizeof *old);
    return true;
}

/* The number of a text, told to the reader with the next packet if it is new. 0: no memory. */
static uint64_t intern(Perfetto *f, unsigned field, const char *text) {
    if (f->used * 2 >= f->capacity && !interned_grow(f, f->capacity * 2)) return 0;
    Interned *i = interned_at(f, key_of(field, text));
    if (i->key) return i->iid;
    i->key = key_of(field, text);
    i->iid = ++f->iids[field];
    f->used++;
    Message entry;
    entry.n = 0;
    add_uint(&entry, INTERNED_IID, i->iid);
    add_text(&entry, INTERNED_TEXT, text);
    add_message(&f->fresh, field, &entry);
    return i->iid;
}

static uint64_t name_of_task(Perfetto *f, Task *k) {
    char buf[32];
    if (k->name_id) return k->name_id;
    const char *name = task_name(k);
    if (name == NULL) print_buf(buf, sizeof buf, "G%lu", k->id), name = buf;
    return k->name_id = intern(f, INTERNED_NAMES, name);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static void write_track(TraceWriter *w, Message *track) {
    Message packet;
    packet.n = 0;
    add_uint(&packet, PACKET_SEQUENCE_ID, 1);
    add_uint(&packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
    add_message(&packet, PACKET_TRACK_DESCRIPTOR, track);
    write_packet(w, &packet);
}

static void add_track(TraceWriter *w, uint64_t uuid, uint64_t parent, uint64_t rank,
                      const char *name, bool in_order) {
    Message track;
    track.n = 0;
    add_uint(&track, TRACK_UUID, uuid);
    add_uint(&track, TRACK_PARENT, parent);
    add_text(&track, TRACK_NAME, name);
    add_uint(&track, TRACK_RANK, rank);
    if (in_order) add_uint(&track, TRACK_CHILD_ORDERING, ORDERING_EXPLICIT);
    write_track(w, &track);
}

static void add_program(TraceWriter *w) {
    char name[32] = "";
    long fd = os_sys(SYS_openat, AT_FDCWD, (long)"/proc/self/comm", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    long n = fd < 0 ? 0 : os_sys(SYS_read, fd, (long)name, sizeof name - 1, 0, 0, 0);
    if (fd >= 0) os_sys(SYS_close, fd, 0, 0, 0, 0, 0);
    name[n > 0 ? n - 1 : 0] = 0; /* instead of the end of the line */
    Message process = {0}, track = {0};
    add_uint(&process, PROCESS_PID, (uint64_t)os_getpid());
    add_text(&process, PROCESS_NAME, name[0] ? name : "program");
    add_uint(&track, TRACK_UUID, PROGRAM);
    add_message(&track, TRACK_PROCESS, &process);
    add_uint(&track, TRACK_CHILD_ORDERING, ORDERING_EXPLICIT);
    write_track(w, &track);
    add_track(w, PROCESSORS, PROGRAM, 0, "processors (P)", true);
    add_track(w, THREADS, PROGRAM, 1, "threads in blocking calls (M)", true);
    add_track(w, RUNTIME, PROGRAM, 2, "runtime", false);
    add_track(w, REGIONS, PROGRAM, 3, "regions", true);
}

static void track_seen(TraceWriter *w, uint8_t *state, uint64_t base, uint64_t n, uint64_t parent,
                       const char *letter) {
    char name[32];
    if (*state != UNSEEN) return;
    print_buf(name, sizeof name, "%s%lu", letter, n);
    add_track(w, base + n, parent, n, name, false);
    *state = CLOSED;
}

/* The track of a P; without one, the runtime's. */
static uint64_t track_of(TraceWriter *w, uint16_t p) {
    Perfetto *f = w->more;
    if (p >= MAX_PROCS) return RUNTIME;
    track_seen(w, &f->ps[p], FIRST_P, p, PROCESSORS, "P");
    return FIRST_P + p;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void begin_event(Message *event, unsigned type, uint64_t track) {
    event->n = 0;
    add_uint(event, EVENT_TYPE, type);
    add_uint(event, EVENT_TRACK, track);
}

static void add_names(Perfetto *f, Message *event, uint64_t name, const char *category) {
    add_uint(event, EVENT_NAME, name);
    add_uint(event, EVENT_CATEGORY, intern(f, INTERNED_CATEGORIES, category));
}

static void annotate(Perfetto *f, Message *event, const char *key, uint64_t v) {
    Message a;
    a.n = 0;
    add_uint(&a, ANNOTATION_NAME, intern(f, INTERNED_ANNOTATION_NAMES, key));
    add_uint(&a, ANNOTATION_UINT, v);
    add_message(event, EVENT_ANNOTATION, &a);
}

static void annotate_text(Perfetto *f, Message *event, const char *key, const char *v) {
    Message a;
    a.n = 0;
    add_uint(&a, ANNOTATION_NAME, intern(f, INTERNED_ANNOTATION_NAMES, key));
    add_uint(&a, ANNOTATION_STRING_IID, intern(f, INTERNED_STRINGS, v));
    add_message(event, EVENT_ANNOTATION, &a);
}

static void close_slice(TraceWriter *w, uint8_t *state, uint64_t track, const char *end) {
    Message event;
    if (*state != OPEN_SLICE) return;
    *state = CLOSED;
    begin_event(&event, SLICE_END, track);
    if (end) annotate_text(w->more, &event, "end", end);
    write_event(w, w->now, &event);
}

static void open_slice(TraceWriter *w, uint8_t *state, uint64_t track, Task *k,
                       const char *category, uint64_t flow) {
    Perfetto *f = w->more;
    Message event;
    close_slice(w, state, track, "lost its P");
    *state = OPEN_SLICE;
    begin_event(&event, SLICE_BEGIN, track);
    add_names(f, &event, name_of_task(f, k), category);
    annotate(f, &event, "g", k->id);
    if (flow) add_fixed64(&event, EVENT_TERMINATING_FLOW, flow);
    write_event(w, w->now, &event);
}

static void perfetto_runs(TraceWriter *w, Task *k, const TraceEvent *e) {
    Perfetto *f = w->more;
    open_slice(w, &f->ps[e->p], track_of(w, e->p), k, "run", k->flow ? k->id : 0);
}

static void perfetto_leaves(TraceWriter *w, Task *k, const char *end) {
    Perfetto *f = w->more;
    if (k->p < MAX_PROCS) close_slice(w, &f->ps[k->p], FIRST_P + k->p, end);
}

static void perfetto_calls(TraceWriter *w, Task *k, const TraceEvent *e) {
    Perfetto *f = w->more;
    if (k->on >= MOST_THREADS) return;
    track_seen(w, &f->threads[k->on], FIRST_THREAD, k->on, THREADS, "M");
    open_slice(w, &f->threads[k->on], FIRST_THREAD + k->on, k, "syscall", 0);
}

static void perfetto_returns(TraceWriter *w, Task *k, const char *end) {
    Perfetto *f = w->more;
    if (k->on < MOST_THREADS) close_slice(w, &f->threads[k->on], FIRST_THREAD + k->on, end);
}

static void perfetto_readied(TraceWriter *w, Task *k, const TraceEvent *e) {
    Perfetto *f = w->more;
    Message event;
    begin_event(&event, INSTANT, track_of(w, e->p));
    add_names(f, &event, intern(f, INTERNED_NAMES, "wake"), "wake");
    annotate(f, &event, "g", k->id);
    annotate(f, &event, "by", e->y);
    if (e->x) annotate(f, &event, "about", 1);
    add_fixed64(&event, EVENT_FLOW, k->id);
    write_event(w, e->when, &event);
}

static void perfetto_created(TraceWriter *w, Task *k, const TraceEvent *e) {
    Perfetto *f = w->more;
    Message event;
    begin_event(&event, INSTANT, track_of(w, e->p));
    add_names(f, &event, intern(f, INTERNED_NAMES, "create"), "create");
    annotate(f, &event, "g", k->id);
    annotate(f, &event, "by", e->y);
    write_event(w, e->when, &event);
}

static void perfetto_region(TraceWriter *w, Task *k, const TraceEvent *e) {
    Perfetto *f = w->more;
    Message event;
    char name[64];
    if (!k->has_track) {
        const char *who = task_name(k);
        print_buf(name, sizeof name, "%s G%lu", who ? who : "", k->id);
        add_track(w, FIRST_REGIONS + k->id, REGIONS, k->id & INT32_MAX, name, false);
        k->has_track = true;
    }
    begin_event(&event, e->x ? SLICE_BEGIN : SLICE_END, FIRST_REGIONS + k->id);
    if (e->x) {
        add_names(f, &event, intern(f, INTERNED_NAMES, e->text), "region");
        annotate(f, &event, "g", k->id);
    }
    write_event(w, e->when, &event);
}

static void perfetto_instant(TraceWriter *w, const TraceEvent *e, const char *name, const char *key,
                             uint64_t v) {
    Perfetto *f = w->more;
    Message event;
    begin_event(&event, INSTANT, track_of(w, e->p));
    add_names(f, &event, intern(f, INTERNED_NAMES, name), "sched");
    annotate(f, &event, key, v);
    write_event(w, e->when, &event);
}

static void perfetto_world(TraceWriter *w, const TraceEvent *e) {
    Perfetto *f = w->more;
    Message event;
    close_slice(w, &f->runtime, RUNTIME, NULL);
    if (!e->x) return;
    f->runtime = OPEN_SLICE;
    begin_event(&event, SLICE_BEGIN, RUNTIME);
    add_names(f, &event, intern(f, INTERNED_NAMES, "stop the world"), "sched");
    write_event(w, e->when, &event);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void add_clock(Message *snapshot, unsigned id, uint64_t ns, bool incremental) {
    Message clock;
    clock.n = 0;
    add_uint(&clock, CLOCK_ID, id);
    add_uint(&clock, CLOCK_TIMESTAMP, ns);
    if (incremental) add_uint(&clock, CLOCK_IS_INCREMENTAL, 1);
    add_message(snapshot, SNAPSHOT_CLOCKS, &clock);
}

/* A clock of the system at the moment when the trace began. */
static uint64_t clock_at_start(const TraceWriter *w, clockid_t clock) {
    struct timespec ts = {0};
    clock_gettime(clock, &ts);
    uint64_t now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
    return now - ns_of(w, w->source->last_tick);
}

static bool perfetto_begin(TraceWriter *w) {
    Perfetto *f = w->more = os_map(sizeof *f, false);
    if (f == NULL || !interned_grow(f, 1024)) return false;
    Message packet = {0}, snapshot = {0}, defaults = {0};
    add_clock(&snapshot, REALTIME, clock_at_start(w, CLOCK_REALTIME), false);
    add_clock(&snapshot, MONOTONIC, clock_at_start(w, CLOCK_MONOTONIC), false);
    add_clock(&snapshot, BOOTTIME, clock_at_start(w, CLOCK_BOOTTIME), false);
    add_clock(&snapshot, OURS, 0, true);
    add_uint(&defaults, DEFAULTS_CLOCK_ID, OURS);
    add_uint(&packet, PACKET_SEQUENCE_ID, 1);
    add_uint(&packet, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
    add_message(&packet, PACKET_CLOCK_SNAPSHOT, &snapshot);
    add_message(&packet, PACKET_DEFAULTS, &defaults);
    write_packet(w, &packet);
    add_program(w);
    return true;
}

/* gort-trace knows a whole trace by its sums. */
static void perfetto_finish(TraceWriter *w) {
    Perfetto *f = w->more;
    Message event;
    close_slice(w, &f->runtime, RUNTIME, NULL);
    begin_event(&event, INSTANT, RUNTIME);
    add_names(f, &event, intern(f, INTERNED_NAMES, "end of the trace"), "sums");
    annotate_text(f, &event, "by", "gort " GORT_VERSION);
    annotate(f, &event, "dropped", w->source->dropped);
    for (const TraceSum *sum = trace_sums; sum->name; sum++)
        annotate(f, &event, sum->name, w->kinds[sum->kind]);
    write_event(w, w->now, &event);
    write_group(w);
}

static void perfetto_free(TraceWriter *w) {
    Perfetto *f = w->more;
    if (f == NULL) return;
    if (f->table) os_unmap(f->table, f->capacity * sizeof *f->table);
    os_unmap(f, sizeof *f);
}

const TraceForm perfetto_form = {perfetto_begin,   perfetto_runs,    perfetto_leaves,
                                 perfetto_calls,   perfetto_returns, perfetto_readied,
                                 perfetto_created, perfetto_region,  perfetto_instant,
                                 perfetto_world,   perfetto_finish,  perfetto_free};
