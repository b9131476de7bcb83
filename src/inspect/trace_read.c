/*
 * Reading a trace back: the records of all buffers, merged in the order of time.
 *
 * Each buffer is a stream in the order of time: its chunks in the spill files, or in the flight
 * recorder's ring, then the one in memory. A stream decodes its words into events
 * (trace_buf.h has the format) and fills in what a record leaves out: the clock, the P, the upper
 * half of an id, the goroutine that ran and made others ready. A heap of the streams merges them.
 *
 * No thread records any more, or, for the last seconds of the flight recorder, which goes on, all
 * is copied: first the chunk in memory of each thread, then the ring. So what a thread finishes in
 * between is there, perhaps twice (skip_copy). Chunks of the ring may be written over meanwhile,
 * the oldest first: the newest are copied first, and those that are gone bound the beginning.
 *
 * Memory comes from mmap, since a fatal error may have struck inside malloc; then the records may
 * be damaged, so every index is checked.
 */
#include "inspect/trace_form.h"
#include "sched/sched.h"
#include "sched/trace_buf.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#define t tracing
#define NO_CHUNK UINT64_MAX

typedef struct Stream {
    const uint64_t *at, *end; /* the piece being read */
    uint64_t chunk;           /* the next chunk of this buffer in the spill file */
    TraceBuf *buf;            /* its chunk in memory comes after the spilled ones; NULL: none */
    TraceBuf *copy;           /* of a thread that goes on, which buf is; NULL: none */
    /* as of the last record: */
    uint64_t now, high, current;
    uint32_t thread;
    uint16_t p;
    TraceEvent event; /* the next, not handed out yet */
} Stream;

typedef struct Reader {
    TraceSource source;
    const TraceChunk *file[2]; /* the spill files, mapped */
    uint64_t size[2];          /* chunks in each */
    uint64_t chunks;
    uint32_t *order;  /* flight: places in the ring, the oldest first */
    uint32_t places;  /* as many there are */
    TraceChunk *ring; /* live: a copy, in that order; NULL: the ring is read itself */
    uint64_t *next;   /* chunk -> the next one of the same buffer */
    Stream *streams;
    uint32_t *heap; /* indexes of streams, by the time of their next event */
    uint32_t nstreams, nheap;
    uint64_t forgotten; /* flight: all records later than that are there */
    uint64_t since;     /* flight: leave out what is older */
    uint64_t until;     /* live: and what is later */
    TraceEvent event;   /* handed out last */
} Reader;

typedef struct Telling {
    uint32_t session;
    bool flight, live;
    int64_t keep_ns;
    uint64_t most; /* live: so many bytes of records, about */
    const TraceForm *form;
} Telling;

/* ---- a stream -------------------------------------------------------------------------------- */

static void open_chunk(Stream *s, const TraceChunk *c, uint64_t words) {
    s->at = c->word;
    s->end = (const uint64_t *)c + (words >= 4 && words <= CHUNK ? words : 4);
    s->now = c->stamp;
    s->high = c->high;
    s->thread = c->thread;
    s->p = (uint16_t)c->p;
}

static const TraceChunk *spilled(const Reader *r, uint64_t n) {
    uint64_t place;
    if (r->ring) return &r->ring[n];
    if (r->order) return &t.ring.chunk[r->order[n]];
    int which = spill_of(n, &place);
    return &r->file[which][place];
}

/* Opens the next chunk; false: there is none. */
static bool next_piece(Reader *r, Stream *s) {
    if (s->chunk != NO_CHUNK) {
        const TraceChunk *c = spilled(r, s->chunk);
        s->chunk = r->next[s->chunk];
        open_chunk(s, c, c->words);
        return true;
    }
    TraceBuf *b = s->buf;
    if (b == NULL || b->used == 0) return false;
    s->buf = NULL;
    open_chunk(s, &b->chunk, (uint64_t)(load_acq(&b->at) - (const uint64_t *)&b->chunk));
    return true;
}

/* How many words follow the first word of a record. */
static const uint8_t words_behind[64] = {[EV_CREATE] = 2,
                                         [EV_EXISTS] = 1,
                                         [EV_CLOCK] = 1,
                                         [EV_NAME] = TRACE_TEXT / 8,
                                         [EV_REGION] = TRACE_TEXT / 8};

/* Is the slice short? Then a READY without a clock reading of its own is exact enough (trace.c). */
static bool short_slice(const Stream *s) {
    for (const uint64_t *w = s->at; w < s->end; w++) {
        unsigned kind = *w & 63;
        if (kind == EV_CLOCK) return false;
        if ((*w >> 12 & ((1u << TICK_BITS) - 1)) >= SHORT) return false;
        if (kind != EV_READY || !(*w >> 6 & 63)) return true;
    }
    return true;
}

static void complete(Stream *s, TraceEvent *e, uint32_t figure, const uint64_t *more) {
    switch (e->kind) {
    case EV_CREATE:
        e->arg = more[0];
        e->y = more[1];
        break;
    case EV_EXISTS: e->arg = more[0]; break;
    case EV_NAME:
    case EV_REGION:
        memcpy(e->text, more, TRACE_TEXT);
        e->text[TRACE_TEXT - 1] = 0;
        break;
    case EV_READY:
        e->y = s->current;
        if (e->x) e->x = !short_slice(s);
        break;
    case EV_SYSCALL:
    case EV_SYSEXIT: e->y = s->thread; break;
    case EV_START:
    case EV_RESUME: s->current = e->g; break;
    case EV_BLOCK:
    case EV_YIELD:
    case EV_PREEMPT:
    case EV_END: s->current = 0; break;
    case EV_HANDOFF:
    case EV_STEAL:
    case EV_POLL:
    case EV_TIMER:
    case EV_WORLD:
        e->g = 0;
        e->y = figure;
        break;
    default: break;
    }
}

/* A record that is no event, but changes what the next records mean. */
static void note(Stream *s, unsigned kind, uint32_t figure, const uint64_t *more) {
    if (kind == EV_CLOCK) s->now = more[0];
    else if (kind == EV_PROC) s->p = (uint16_t)figure;
    else if (kind == EV_HIGH) s->high = figure;
    else if (kind == EV_THREAD) s->thread = figure;
}

/* Decodes the next event into s->event; false: there is none. */
static bool advance(Reader *r, Stream *s) {
    for (;;) {
        while (s->at >= s->end)
            if (!next_piece(r, s)) return false;
        uint64_t w = *s->at++;
        unsigned kind = w & 63;
        const uint64_t *more = s->at;
        if (s->end - s->at < words_behind[kind]) {
            s->at = s->end;
            continue;
        }
        s->at += words_behind[kind];
        s->now += w >> 12 & ((1u << TICK_BITS) - 1);
        uint32_t figure = (uint32_t)(w >> 32);
        if (kind >= EV_KINDS || kind == EV_NONE) {
            note(s, kind, figure, more);
            continue;
        }
        s->event = (TraceEvent){
            .when = s->now, .g = s->high << 32 | figure, .p = s->p, .kind = (uint8_t)kind};
        s->event.x = w >> 6 & 63;
        complete(s, &s->event, figure, more);
        return true;
    }
}

/* ---- all streams ----------------------------------------------------------------------------- */

static bool earlier(Reader *r, uint32_t a, uint32_t b) {
    return r->streams[a].event.when < r->streams[b].event.when;
}

static void streams_sift(Reader *r, uint32_t i) {
    uint32_t moving = r->heap[i];
    for (uint32_t child; (child = 2 * i + 1) < r->nheap; i = child) {
        if (child + 1 < r->nheap && earlier(r, r->heap[child + 1], r->heap[child])) child++;
        if (!earlier(r, r->heap[child], moving)) break;
        r->heap[i] = r->heap[child];
    }
    r->heap[i] = moving;
}

static const TraceEvent *next_event(TraceSource *source) {
    Reader *r = container_of(source, Reader, source);
    while (r->nheap > 0) {
        Stream *s = &r->streams[r->heap[0]];
        r->event = s->event;
        if (!advance(r, s)) r->heap[0] = r->heap[--r->nheap];
        if (r->nheap > 0) streams_sift(r, 0);
        if (r->event.when > r->until) break;
        if (r->event.when >= r->since) return &r->event;
    }
    return NULL;
}

/* The chunk in memory may have been finished: by a thread that a signal has stopped in spill_chunk,
 * or, live, after it was copied. */
static void skip_copy(Stream *s, const TraceChunk *last) {
    if (s->buf && (int32_t)(last->number - s->buf->chunk.number) >= 0) s->buf = NULL;
}

/* Links the chunks of each buffer in the order they were written. */
static void link_chunks(Reader *r) {
    for (uint64_t i = r->chunks; i-- > 0;) {
        uint64_t index = spilled(r, i)->buffer;
        if (index >= r->nstreams) continue;
        if (r->streams[index].chunk == NO_CHUNK) skip_copy(&r->streams[index], spilled(r, i));
        r->next[i] = r->streams[index].chunk;
        r->streams[index].chunk = i;
    }
}

/* False: the file holds chunks, and cannot be mapped. */
static bool map_file(Reader *r, int which, uint64_t chunks) {
    size_t size = chunks * sizeof(TraceChunk);
    if (chunks == 0) return true;
    int fd = own_fd_number(&t.spill[which]);
    long at;
    if (fd < 0) store_rlx(&t.lost, true); /* the program has closed it: all are dropped */
    /* dropped chunks read as zero */
    if (fd >= 0 && os_sys(SYS_ftruncate, fd, (long)size, 0, 0, 0, 0) == 0) {
        at = os_sys(SYS_mmap, 0, (long)size, PROT_READ, MAP_PRIVATE, fd, 0);
    } else { /* past the process's limit: the file has what lies before that */
        at = (long)os_map(size, false);
        if (fd >= 0 && at) os_sys(SYS_pread64, fd, at, (long)size, 0, 0, 0);
    }
    if (at == 0 || (at < 0 && at > -4096)) return false;
    r->file[which] = (const TraceChunk *)at;
    r->size[which] = chunks;
    return true;
}

static bool map_spill(Reader *r) {
    uint64_t n = load_acq(&t.spilled), place;
    r->chunks = n;
    if (n == 0) return true;
    if (!map_file(r, 0, n < IN_MEMORY ? n : IN_MEMORY)) return false;
    if (spill_of(n - 1, &place) == 1 && !map_file(r, 1, place + 1)) return false;
    return true;
}

/* The places of the ring by age, of the newest `most` chunks. How many are left out. */
static uint64_t order_ring(Reader *r, uint64_t most) {
    const FlightRing *f = &t.ring;
    uint32_t n = f->held <= r->places ? f->held : r->places, at = f->newest;
    uint64_t out = n > most ? n - most : 0;
    r->forgotten = f->forgotten;
    for (uint32_t i = 0; i < n && at < n; i++) {
        at = f->slot[at].next % n;
        if (i >= out) r->order[r->chunks++] = at;
        else if (f->slot[at].last > r->forgotten) r->forgotten = f->slot[at].last;
    }
    return out;
}

/* The chunks up to number i have been written over. */
static void forget_chunks(Reader *r, uint64_t i) {
    r->forgotten = load_rlx(&t.ring.forgotten);
    do r->ring[i].buffer = UINT32_MAX;
    while (i-- > 0);
}

static bool copy_ring(Reader *r, uint64_t most) {
    FlightRing *f = &t.ring;
    M *m = enter();
    lock(&f->lock, RANK_LEAF);
    uint64_t out = order_ring(r, most), gone = f->gone;
    unlock(&f->lock);
    leave(m);
    if (r->chunks == 0) return true;
    r->ring = os_map(r->chunks * sizeof *r->ring, false);
    for (uint64_t i = r->chunks; r->ring && i-- > 0;) {
        memcpy(&r->ring[i], &f->chunk[r->order[i]], sizeof *r->ring);
        fence_loads(); /* pairs with flight_place's fence_stores */
        if (load_acq(&f->gone) - gone <= out + i) continue;
        forget_chunks(r, i);
        break;
    }
    return r->ring != NULL;
}

static bool read_ring(Reader *r, const Telling *as) {
    r->places = t.ring.size;
    r->order = os_map((r->places + 1) * sizeof *r->order, false);
    if (r->order == NULL) return false;
    if (as->live) return copy_ring(r, as->most / sizeof(TraceChunk) + 1);
    order_ring(r, UINT64_MAX);
    return true;
}

static void read_buffer(Reader *r, TraceBuf *b) {
    Stream *s = &r->streams[b->index];
    s->buf = b;
    r->source.dropped += b->dropped;
}

/* The chunk in memory of a thread that goes on recording; false: the thread has begun another, so
 * the ring has this one. */
static bool copy_chunk(const TraceBuf *b, TraceBuf *copy) {
    uint32_t number = load_acq(&b->number); /* pairs with begin_chunk */
    const uint64_t *begin = (const uint64_t *)&b->chunk, *at = load_acq(&b->at);
    memcpy(&copy->chunk, begin, (size_t)(at - begin) * sizeof *at);
    copy->at = (uint64_t *)&copy->chunk + (at - begin);
    copy->used = 1;
    fence_loads(); /* pairs with begin_chunk's fence_stores */
    return number % 2 == 0 && load_acq(&b->number) == number;
}

/* False: no memory. */
static bool read_live(Reader *r, TraceBuf *b) {
    Stream *s = &r->streams[b->index];
    r->source.dropped += b->dropped;
    s->copy = os_map(sizeof *s->copy, false);
    if (s->copy && copy_chunk(b, s->copy)) s->buf = s->copy;
    return s->copy != NULL;
}

static bool add_buffers(Reader *r, const Telling *as) {
    for (TraceBuf *b = load_acq(&t.all); b; b = b->all) {
        if (b->index >= r->nstreams) continue;
        if (load_acq(&b->session) != as->session) continue; /* pairs with open_buf */
        if (!as->live) read_buffer(r, b);
        else if (!read_live(r, b)) return false;
    }
    return true;
}

static bool open_reader(Reader *r, const Telling *as) {
    *r = (Reader){.source.next = next_event};
    r->nstreams = load_acq(&t.buffers);
    r->streams = os_map((r->nstreams + 1) * sizeof *r->streams, false);
    r->heap = os_map((r->nstreams + 1) * sizeof *r->heap, false);
    if (r->streams == NULL || r->heap == NULL) return false;
    for (uint32_t i = 0; i < r->nstreams; i++) r->streams[i].chunk = NO_CHUNK;
    if (!add_buffers(r, as)) return false; /* before the ring: nothing falls between */
    if (as->flight ? !read_ring(r, as) : !map_spill(r)) return false;
    r->next = r->chunks ? os_map(r->chunks * sizeof *r->next, false) : NULL;
    if (r->chunks && r->next == NULL) return false;
    link_chunks(r);
    for (uint32_t i = 0; i < r->nstreams; i++)
        if (advance(r, &r->streams[i])) r->heap[r->nheap++] = i;
    for (uint32_t i = r->nheap / 2; i-- > 0;) streams_sift(r, i);
    return true;
}

static void close_reader(Reader *r) {
    for (int i = 0; i < 2; i++)
        if (r->file[i]) os_unmap((void *)r->file[i], r->size[i] * sizeof(TraceChunk));
    for (uint32_t i = 0; r->streams && i < r->nstreams; i++)
        if (r->streams[i].copy) os_unmap(r->streams[i].copy, sizeof(TraceBuf));
    if (r->ring) os_unmap(r->ring, r->chunks * sizeof *r->ring);
    if (r->order) os_unmap(r->order, (r->places + 1) * sizeof *r->order);
    if (r->next) os_unmap(r->next, r->chunks * sizeof *r->next);
    if (r->streams) os_unmap(r->streams, (r->nstreams + 1) * sizeof *r->streams);
    if (r->heap) os_unmap(r->heap, (r->nstreams + 1) * sizeof *r->heap);
}

/* From when on all records of the flight recorder are there, as far as they are wanted. */
static uint64_t flight_since(const Reader *r, uint64_t now, uint64_t keep) {
    uint64_t since = now - t.tick0 > keep ? now - keep : t.tick0;
    return r->forgotten >= since ? r->forgotten + 1 : since;
}

static int tell_trace(int fd, const Telling *as, int64_t *held) {
    Reader r;
    int result = -ENOMEM;
    uint64_t mask = trace_quiet_begin();
    uint64_t tick1 = trace_stamp(); /* live: all up to then is copied */
    int64_t ns1 = os_now();
    if (open_reader(&r, as)) {
        if (!as->live) tick1 = trace_stamp(), ns1 = os_now(); /* behind all that was recorded */
        r.until = as->live ? tick1 : UINT64_MAX;
        r.source.form = as->form;
        r.source.flight = as->flight;
        r.source.most = t.limit * sizeof(TraceChunk);
        r.source.first_tick = t.tick0;
        r.source.last_tick = tick1;
        r.source.ns_per_tick =
            tick1 > t.tick0 ? (double)(ns1 - t.ns0) / (double)(tick1 - t.tick0) : 1;
        uint64_t keep = (uint64_t)((double)as->keep_ns / r.source.ns_per_tick);
        if (as->flight) r.since = r.source.first_tick = flight_since(&r, tick1, keep);
        if (held) *held = (int64_t)((double)(tick1 - r.source.first_tick) * r.source.ns_per_tick);
        result = trace_write(fd, &r.source);
    }
    close_reader(&r);
    trace_quiet_end(mask, result);
    return result;
}

int trace_write_out(int fd, uint32_t session, bool flight, int64_t keep_ns, int64_t *held) {
    Telling as = {session, flight, false, keep_ns, 0, t.form};
    return tell_trace(fd, &as, held);
}

int trace_write_live(int fd, uint32_t session, int64_t keep_ns, const TraceForm *form,
                     uint64_t most) {
    Telling as = {session, true, true, keep_ns, most, form};
    return tell_trace(fd, &as, NULL);
}
