/*
 * Reading a trace back: the events of all buffers, merged into the order of time.
 *
 * Each buffer is a stream that is in order by itself: its chunks in the spill file, in the order
 * they were written, then what is still in memory; in the flight recorder a ring. A heap of the
 * streams gives the earliest event of all. Called when nobody records any more; memory comes from
 * mmap, since a fatal error may have struck inside malloc.
 */
#include "trace_buf.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#define t tracing

/* One stream for each buffer: its events in the order of time. */
typedef struct Stream {
    const TraceEvent *at, *end;  /* the piece being read */
    uint64_t chunk;              /* the next chunk of this buffer in the spill file */
    const TraceEvent *rest;      /* the last piece: what is still in the buffer */
    uint32_t rest_n;
} Stream;

#define NO_CHUNK UINT64_MAX
typedef struct Reader {
    TraceSource source;
    const TraceEvent *file;      /* the spill file, mapped */
    uint64_t chunks;
    uint64_t *next;              /* chunk -> the next one of the same buffer */
    Stream *streams;
    uint32_t *heap;              /* indexes of streams, by the time of their next event */
    uint32_t nstreams, nheap;
    uint64_t since;              /* flight: leave out what is older */
} Reader;

static bool refill(Reader *r, Stream *s) {
    while (s->at == s->end) {
        if (s->chunk != NO_CHUNK) {
            const TraceEvent *c = r->file + s->chunk * SPILL;
            s->at = c + 1;
            s->end = c + (c->arg >= 1 && c->arg <= SPILL ? c->arg : 1);
            s->chunk = r->next[s->chunk];
        } else if (s->rest_n) {
            s->at = s->rest;
            s->end = s->at + s->rest_n;
            s->rest_n = 0;
        } else {
            return false;
        }
    }
    return true;
}

static bool earlier(Reader *r, uint32_t a, uint32_t b) {
    return r->streams[a].at->when < r->streams[b].at->when;
}

static void sift_down(Reader *r, uint32_t i) {
    uint32_t moving = r->heap[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= r->nheap) break;
        if (child + 1 < r->nheap && earlier(r, r->heap[child + 1], r->heap[child])) child++;
        if (!earlier(r, r->heap[child], moving)) break;
        r->heap[i] = r->heap[child];
        i = child;
    }
    r->heap[i] = moving;
}

static const TraceEvent *next_event(TraceSource *source) {
    Reader *r = container_of(source, Reader, source);
    while (r->nheap > 0) {
        Stream *s = &r->streams[r->heap[0]];
        const TraceEvent *e = s->at++;
        if (!refill(r, s)) r->heap[0] = r->heap[--r->nheap];
        if (r->nheap > 0) sift_down(r, 0);
        if (e->when >= r->since) return e;
    }
    return NULL;
}

static void make_heap(Reader *r) {
    for (uint32_t i = 0; i < r->nstreams; i++)
        if (refill(r, &r->streams[i])) r->heap[r->nheap++] = i;
    for (uint32_t i = r->nheap / 2; i-- > 0;) sift_down(r, i);
}

/* Links the chunks of each buffer in the order they were written. */
static void link_chunks(Reader *r) {
    for (uint64_t i = r->chunks; i-- > 0;) {
        uint64_t index = r->file[i * SPILL].g;
        if (index >= r->nstreams) continue;
        r->next[i] = r->streams[index].chunk;
        r->streams[index].chunk = i;
    }
}

static bool map_spill(Reader *r) {
    r->chunks = load_acq(&t.spilled);
    if (r->chunks == 0) return true;
    size_t size = r->chunks * SPILL * sizeof(TraceEvent);
    os_sys(SYS_ftruncate, t.spill, (long)size, 0, 0, 0, 0);
    long at = os_sys(SYS_mmap, 0, (long)size, PROT_READ, MAP_PRIVATE, t.spill, 0);
    if (at < 0 && at > -4096) return false;
    r->file = (const TraceEvent *)at;
    r->next = os_map(r->chunks * sizeof *r->next, false);
    return r->next != NULL;
}

/* What is still in the buffers comes after what was spilled. */
static void add_rest(Reader *r, TraceBuf *b, bool flight) {
    Stream *s = &r->streams[b->index];
    uint64_t first = flight ? (b->n > KEPT ? b->n - KEPT : 0) : 1;
    r->source.dropped += b->dropped;
    if (b->n <= first) return;
    uint64_t from = first % KEPT, n = b->n - first, straight = KEPT - from;
    r->source.count += n;
    if (n <= straight) { /* one piece */
        s->rest = b->ev + from;
        s->rest_n = (uint32_t)n;
        return;
    }
    s->at = b->ev + from; /* a ring that has gone round: its end, then its beginning */
    s->end = b->ev + KEPT;
    s->rest = b->ev;
    s->rest_n = (uint32_t)(n - straight);
}

static bool open_reader(Reader *r, bool flight) {
    *r = (Reader){.source.next = next_event};
    r->nstreams = load_acq(&t.buffers);
    r->streams = os_map((r->nstreams + 1) * sizeof *r->streams, false);
    r->heap = os_map((r->nstreams + 1) * sizeof *r->heap, false);
    if (r->streams == NULL || r->heap == NULL) return false;
    for (uint32_t i = 0; i < r->nstreams; i++) r->streams[i].chunk = NO_CHUNK;
    for (TraceBuf *b = load_acq(&t.all); b; b = b->all)
        if (b->index < r->nstreams) add_rest(r, b, flight);
    if (!flight && !map_spill(r)) return false;
    if (!flight) link_chunks(r);
    r->source.count += r->chunks * SPILL;
    make_heap(r);
    return true;
}

static void close_reader(Reader *r) {
    if (r->file) os_unmap((void *)r->file, r->chunks * SPILL * sizeof(TraceEvent));
    if (r->next) os_unmap(r->next, r->chunks * sizeof *r->next);
    if (r->streams) os_unmap(r->streams, (r->nstreams + 1) * sizeof *r->streams);
    if (r->heap) os_unmap(r->heap, (r->nstreams + 1) * sizeof *r->heap);
}

int trace_write_out(int fd, bool flight, int64_t keep_ns) {
    Reader r;
    uint64_t tick1 = trace_stamp();
    int64_t ns1 = os_now();
    int result = -ENOMEM;
    if (open_reader(&r, flight)) {
        r.source.first_tick = t.tick0;
        r.source.ns_per_tick = tick1 > t.tick0 ? (double)(ns1 - t.ns0) / (double)(tick1 - t.tick0) : 1;
        uint64_t keep = keep_ns ? (uint64_t)((double)keep_ns / r.source.ns_per_tick) : 0;
        if (keep && tick1 - t.tick0 > keep) r.since = r.source.first_tick = tick1 - keep;
        result = trace_write(fd, &r.source);
    }
    close_reader(&r);
    return result;
}
