/* The tables of profiles: a census has a place for every stack; what finds none in another is a
 * sample of its own in each format. */
#include "../lib/white.h"
#include "inspect/profile.h"
#include "inspect/scratch.h"

#include <unistd.h>

enum { STACKS = 10000 };
static const ProfileKind kind = {.count = "events", .value = "time", .label = "goroutine"};

static Profile filled(bool grows) {
    Profile f = {.kind = &kind, .grows = grows};
    CHECK_EQ(profile_begin(&f), 0);
    for (uintptr_t i = 1; i <= STACKS; i++) {
        Sample s = {.name = "worker", .depth = 2, .pcs = {0x10000 * i, 0x10000 * i + 8}};
        profile_add(&f, &s, 1, 10);
    }
    profile_end(&f);
    return f;
}

static Out written(void (*write)(Out *o, const Profile *f), const Profile *f) {
    Out o = OUT_GROWING;
    write(&o, f);
    CHECK_EQ(o.failed, 0);
    out_bytes(&o, "", 1);
    return o;
}

static void write_folded(Out *o, const Profile *f) { folded_write(o, f, false); }
static void write_flame(Out *o, const Profile *f) { flame_write(o, f, false); }
static void write_pprof(Out *o, const Profile *f) { pprof_write(o, f, 0); }

static uint64_t varint(const char **at) {
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        unsigned char c = (unsigned char)*(*at)++;
        v |= (uint64_t)(c & 127) << shift;
        if (c < 128) return v;
    }
}

/* The sums of the samples' two values; the number of locations; is there a function "(lost)"? */
typedef struct Sums {
    uint64_t count, value, locations;
    bool lost;
} Sums;

static void add_sample(Sums *sums, const char *at, const char *end) {
    for (int values = 0; at < end;) {
        uint64_t tag = varint(&at), v = varint(&at);
        if ((tag & 7) == 2) at += v;
        else if (tag >> 3 == 2) *(values++ ? &sums->value : &sums->count) += v;
    }
}

static Sums sums_of(const Out *o) {
    Sums sums = {0};
    const char *at = o->buf, *end = o->buf + o->used - 1;
    while (at < end) {
        uint64_t tag = varint(&at), n = varint(&at);
        if ((tag & 7) != 2) continue;
        if (tag >> 3 == 2) add_sample(&sums, at, at + n);
        if (tag >> 3 == 4) sums.locations++;
        if (tag >> 3 == 6 && n == 6 && memcmp(at, "(lost)", 6) == 0) sums.lost = true;
        at += n;
    }
    return sums;
}

static uint64_t folded_sum(const char *s) {
    uint64_t sum = 0;
    for (const char *end; (end = strchr(s, '\n')); s = end + 1)
        sum += strtoull((const char *)memrchr(s, ' ', (size_t)(end - s)), NULL, 10);
    return sum;
}

static void complete(bool grows) {
    Profile f = filled(grows);
    Out pprof = written(write_pprof, &f), folded = written(write_folded, &f),
        svg = written(write_flame, &f);
    Sums sums = sums_of(&pprof);
    CHECK_EQ(sums.count, STACKS);
    CHECK_EQ(sums.value, STACKS * 10);
    CHECK_EQ(folded_sum(folded.buf), STACKS * 10);
    CHECK_EQ(sums.lost, !grows);
    CHECK_EQ(strstr(folded.buf, "(lost) ") != NULL, !grows);
    CHECK_EQ(strstr(svg.buf, "(lost) ") != NULL, !grows);
    if (grows) CHECK_EQ(sums.locations, 2 * STACKS);
    scratch_free(pprof.buf), scratch_free(folded.buf), scratch_free(svg.buf);
    profile_free(&f);
}

static bool is_utf8(const char *s) {
    for (size_t n; *s; s += n)
        if ((n = utf8_bytes(s)) == 0) return false;
    return true;
}

/* Names that are no UTF-8, or that the graph cuts. */
static void names(void) {
    Profile f = {.kind = &kind};
    Sample s = {.name = "bad\n\xff\xef\xbf\xbf\xf0\x9f", .depth = 1, .pcs = {4096}};
    CHECK_EQ(profile_begin(&f), 0);
    profile_add(&f, &s, 1, 900);
    for (int i = 0; i < 50; i++) {
        char name[] = "a\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4";
        name[0] = (char)('A' + i);
        memcpy(s.name, name, sizeof name);
        profile_add(&f, &s, 1, 10 + i);
    }
    profile_end(&f);
    Out folded = written(write_folded, &f), svg = written(write_flame, &f);
    CHECK(is_utf8(folded.buf) && is_utf8(svg.buf));
    CHECK(strstr(svg.buf, "\xef\xbf\xbf") == NULL); /* XML has no such character */
    int lines = 0;
    for (const char *c = folded.buf; *c; c++) lines += *c == '\n';
    CHECK_EQ(lines, 51);
    scratch_free(folded.buf), scratch_free(svg.buf);
    profile_free(&f);
}

/* A goroutine's name for each: the graph is drawn in the time of a walk, and shows their sum. */
static void crowd(void) {
    enum { CROWD = 200000 };
    Profile f = {.kind = &kind, .grows = true};
    CHECK_EQ(profile_begin(&f), 0);
    for (int i = 0; i < CROWD; i++) {
        Sample s = {.depth = 1, .pcs = {4096}};
        print_buf(s.name, sizeof s.name, "worker %d", i);
        profile_add(&f, &s, 1, 10);
    }
    profile_end(&f);
    Out svg = written(write_flame, &f);
    CHECK(strstr(svg.buf, "(200000 others) 100.0%") != NULL);
    scratch_free(svg.buf);
    profile_free(&f);
}

/* Waits of a year, in ns: half each. */
static void long_waits(void) {
    Profile f = {.kind = &kind};
    Sample one = {.name = "one", .depth = 1, .pcs = {4096}}, two = one;
    memcpy(two.name, "two", 4);
    CHECK_EQ(profile_begin(&f), 0);
    profile_add(&f, &one, 1, (int64_t)1 << 55);
    profile_add(&f, &two, 1, (int64_t)1 << 55);
    profile_end(&f);
    Out svg = written(write_flame, &f);
    CHECK(strstr(svg.buf, "all 100.0%") && strstr(svg.buf, "one 50.0%"));
    CHECK(strstr(svg.buf, "two 50.0%</title><rect x=") && strstr(svg.buf, " width=\"600.0\""));
    scratch_free(svg.buf);
    profile_free(&f);
}

/* In a program whose file has a name that is no UTF-8: strings of a profile are. */
static void odd_file(const char *path) {
    Profile f = {.kind = &kind};
    Sample s = {.name = "one", .depth = 1, .pcs = {(uintptr_t)&kind}}; /* no code of the library */
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(profile_begin(&f), 0);
    profile_add(&f, &s, 1, 10);
    profile_end(&f);
    Out pprof = written(write_pprof, &f);
    int strings = 0;
    for (const char *at = pprof.buf, *end = at + pprof.used - 1; at < end;) {
        uint64_t tag = varint(&at), n = varint(&at);
        char text[256] = "";
        if ((tag & 7) != 2) continue;
        if (tag >> 3 == 6) memcpy(text, at, n < sizeof text ? n : sizeof text - 1), strings++;
        CHECKF(is_utf8(text), "a string of the profile: %s", text);
        at += n;
    }
    CHECK(strings > 4);
    scratch_free(pprof.buf);
    profile_free(&f);
}

static void run_by_odd_name(void) {
    char self[512], name[520];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(n > 0);
    self[n] = 0;
    print_buf(name, sizeof name, "%s\xff%d", self, getpid());
    CHECK_EQ(link(self, name), 0);
    execl(name, name, "again", NULL);
    CHECK(0);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        odd_file(argv[0]);
        return 0;
    }
    names();
    long_waits();
    crowd();
    complete(true);
    complete(false);
    run_by_odd_name();
    return 0;
}
