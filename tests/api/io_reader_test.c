/* gort_reader: lines byte by byte, random cuts against a model, limits, ends, errors in the middle;
 * and gort_writer. */
#define _GNU_SOURCE 1
#include "../lib/test.h"
#include "../lib/io_net.h"

static int ends[2];

static void pair_new(void) {
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}
static void pair_over(void) {
    CHECK_EQ(gort_close(ends[0]), 0);
    if (ends[1] >= 0) CHECK_EQ(gort_close(ends[1]), 0);
}

static void put(const char *text) {
    CHECK_EQ(gort_write_full(ends[1], text, strlen(text)), (ssize_t)strlen(text));
}
static void end_of_input(void) {
    CHECK_EQ(gort_close(ends[1]), 0);
    ends[1] = -1;
}

static void check_line(gort_reader *r, const char *want) {
    char *line = NULL;
    CHECK_EQ(gort_reader_line(r, &line), (ssize_t)strlen(want));
    CHECK_STR(line, want);
}
static ssize_t line_error(gort_reader *r) {
    char *line;
    return gort_reader_line(r, &line);
}

static void test_lines(void) {
    char *text, some[8] = "";
    pair_new();
    gort_reader *r = gort_reader_new(ends[0], 0);
    put("one\ntwo\r\n\n\r\n\rx\r\ra:b\r:rest of it\nmore\r\n");
    check_line(r, "one");
    check_line(r, "two");
    check_line(r, "");
    check_line(r, "");
    CHECK_EQ(gort_reader_until(r, ':', &text), 5);
    CHECK_STR(text, "\rx\r\ra");
    CHECK_EQ(gort_reader_until(r, ':', &text), 2); /* only gort_reader_line drops it */
    CHECK_STR(text, "b\r");
    CHECK_EQ(gort_reader_read(r, some, 5), 5);
    CHECK_STR(some, "rest ");
    check_line(r, "of it");
    CHECK_EQ(gort_reader_until(r, '\n', &text), 5);
    CHECK_STR(text, "more\r");
    put("direct");
    CHECK_EQ(gort_reader_read(r, some, 7), 6);
    CHECK_EQ(memcmp(some, "direct", 6), 0);
    put("the last\r");
    end_of_input();
    check_line(r, "the last\r");
    for (int i = 0; i < 3; i++) CHECK_EQ(line_error(r), -ENODATA);
    CHECK_EQ(gort_reader_read(r, some, 7), 0);
    gort_reader_free(r);
    gort_reader_free(NULL);
    pair_over();
}

static void drip(void *arg) {
    for (const char *s = arg; *s; s++) {
        CHECK_EQ(gort_write_full(ends[1], s, 1), 1);
        gort_yield();
    }
    end_of_input();
}

static void test_byte_by_byte(void) {
    gort_wg wg = {0};
    pair_new();
    gort_reader *r = gort_reader_new(ends[0], 6);
    gort_wg_go(&wg, drip, "abc\r\nsixsix\r\nseven77\r\n\r\nsixsix\nsixsix\r\rx\nsixsix\r");
    check_line(r, "abc");
    check_line(r, "sixsix");
    CHECK_EQ(line_error(r), -EMSGSIZE);
    check_line(r, "");
    check_line(r, "sixsix");
    CHECK_EQ(line_error(r), -EMSGSIZE);
    CHECK_EQ(line_error(r), -EMSGSIZE); /* at the end "\r" is part of the line */
    CHECK_EQ(line_error(r), -ENODATA);
    gort_wg_wait(&wg);
    gort_reader_free(r);
    pair_over();
}

/* The rest of a line that is too long comes late, and the next call goes on behind it. */
static void test_too_long(void) {
    char some[8] = "", *text;
    for (int how = 0; how < 4; how++) {
        pair_new();
        gort_reader *r = gort_reader_new(ends[0], 4);
        put("12345");
        if (how < 2) CHECK_EQ(line_error(r), -EMSGSIZE);
        else CHECK_EQ(gort_reader_until(r, ';', &text), -EMSGSIZE);
        put(how < 2 ? "67" : "6\n7");
        gort_ctx *over = gort_ctx_new(NULL); /* an error while it skips */
        gort_ctx_cancel(over);
        gort_ctx_use(over);
        CHECK_EQ(line_error(r), -ECANCELED);
        gort_ctx_use(NULL);
        gort_ctx_release(over);
        put(how < 2 ? "89\nnext\n" : "89;next\n");
        if (how % 2) check_line(r, "next");
        else {
            CHECK_EQ(gort_reader_read(r, some, 7), 5);
            CHECK_STR(some, "next\n");
        }
        put("12345");
        CHECK_EQ(line_error(r), -EMSGSIZE);
        end_of_input();
        CHECK_EQ(how % 2 ? line_error(r) : gort_reader_read(r, some, 7), how % 2 ? -ENODATA : 0);
        gort_reader_free(r);
        pair_over();
    }
}

/* Lines as long as the limit, and one byte longer, around the sizes of the room. */
static void test_limits(void) {
    static char big[300000];
    static const size_t limits[] = {1, 2, 4092, 4093, 4094, 4095, 4096, 4097, 65536, 131071};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        size_t limit = limits[i];
        int fd = memfd_create("lines", MFD_CLOEXEC);
        char *line;
        memset(big, 'x', sizeof big);
        CHECK_EQ(write(fd, big, limit), (ssize_t)limit);
        CHECK_EQ(write(fd, "\r\n", 2), 2);
        CHECK_EQ(write(fd, big, limit + 1), (ssize_t)limit + 1);
        CHECK_EQ(write(fd, "\n", 1), 1);
        CHECK_EQ(write(fd, big, limit), (ssize_t)limit);
        CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
        gort_reader *r = gort_reader_new(fd, limit == 65536 ? 0 : limit);
        CHECK_EQ(gort_reader_line(r, &line), (ssize_t)limit);
        CHECK_EQ(strlen(line), limit);
        CHECK_EQ(line_error(r), -EMSGSIZE);
        CHECK_EQ(gort_reader_line(r, &line), (ssize_t)limit);
        CHECK_EQ(strlen(line), limit);
        CHECK_EQ(line_error(r), -ENODATA);
        gort_reader_free(r);
        CHECK_EQ(gort_close(fd), 0);
    }
    CHECK(gort_reader_new(0, SIZE_MAX) == NULL);
}

/* Errors in the middle of a line, of every kind that passes. */
static void test_errors(void) {
    char *line;
    pair_new();
    gort_reader *r = gort_reader_new(ends[0], 0);
    for (int i = 0; i < 3; i++) {
        gort_ctx *c = gort_ctx_with_timeout(NULL, i == 1 ? 0 : 3600 * GORT_SEC);
        put("part");
        gort_ctx_use(c);
        if (i != 1) gort_ctx_cancel(c);
        CHECK_EQ(line_error(r), i == 1 ? -ETIMEDOUT : -ECANCELED);
        gort_ctx_use(NULL);
        gort_ctx_release(c);
        if (i == 2) CHECK_EQ(gort_reader_until(r, 'r', &line), 2);
    }
    put(" end\n");
    check_line(r, "tpartpart end");
    put("kept");
    gort_ctx *c = gort_ctx_new(NULL);
    gort_ctx_cancel(c);
    gort_ctx_use(c);
    CHECK_EQ(line_error(r), -ECANCELED);
    gort_ctx_use(NULL);
    gort_ctx_release(c);
    int number = ends[0];
    CHECK_EQ(gort_close(number), 0);
    CHECK_EQ(line_error(r), -EBADF);
    char some[8] = "";
    CHECK_EQ(gort_reader_read(r, some, 7), 4);
    CHECK_STR(some, "kept");
    CHECK_EQ(gort_reader_read(r, some, 7), -EBADF);
    ends[0] = ends[1];
    ends[1] = -1;
    pair_over();
    gort_reader_free(r);
}

/* ---- random cuts against a model ------------------------------------------------------------- */

static char all[20000];
static size_t all_n;

static uint64_t draw(uint64_t *s, uint64_t n) { return test_random(s) % n; }

static void feed(void *arg) {
    uint64_t seed = *(uint64_t *)arg;
    for (size_t at = 0; at < all_n;) {
        size_t n = 1 + draw(&seed, draw(&seed, 4) ? 20 : 6000);
        if (n > all_n - at) n = all_n - at;
        CHECK_EQ(gort_write_full(ends[1], all + at, n), (ssize_t)n);
        at += n;
        if (draw(&seed, 3) == 0) gort_yield();
    }
    end_of_input();
}

/* The model: what a call has to give at `at`; moves it on. */
static ssize_t model(size_t *at, char end, bool cr, size_t limit, size_t *from) {
    const char *stop = memchr(all + *at, end, all_n - *at);
    size_t n = stop ? (size_t)(stop - all) - *at : all_n - *at;
    *from = *at;
    if (*at == all_n) return -ENODATA;
    *at += n + (stop != NULL);
    if (cr && stop && n > 0 && all[*from + n - 1] == '\r') n--;
    return n <= limit ? (ssize_t)n : -EMSGSIZE;
}

static void random_stream(uint64_t seed) {
    static const char letters[] = "abc\n\r\n;";
    uint64_t feeds = seed * 3 + 1, from_seed = seed;
    size_t limit = draw(&seed, 2) ? 1 + draw(&seed, 12) : 1 + draw(&seed, 9000), at = 0;
    uint64_t rare = 1 + draw(&seed, 3000);
    gort_wg wg = {0};
    all_n = draw(&seed, sizeof all);
    for (size_t i = 0; i < all_n; i++)
        all[i] = draw(&seed, rare) ? (char)('a' + i % 26) : letters[draw(&seed, 7)];
    pair_new();
    gort_reader *r = gort_reader_new(ends[0], limit);
    gort_ctx *over = gort_ctx_new(NULL);
    gort_ctx_cancel(over);
    gort_wg_go(&wg, feed, &feeds);
    for (ssize_t want = 0; want != -ENODATA;) {
        size_t begin;
        char *text = NULL, some[50];
        int what = (int)draw(&seed, 8);
        if (what == 0) { /* a read gives what it likes of what is there */
            ssize_t n = gort_reader_read(r, some, 1 + draw(&seed, sizeof some));
            if (n == 0) CHECK_EQ(at, all_n);
            CHECK(n >= 0 && memcmp(some, all + at, (size_t)n) == 0);
            at += (size_t)n;
            continue;
        }
        char end = what < 6 ? '\n' : ';';
        bool cr = what < 5;
        want = model(&at, end, cr, limit, &begin);
        ssize_t n;
        do {
            bool used = draw(&seed, 3) == 0;
            if (used) gort_ctx_use(over);
            n = cr ? gort_reader_line(r, &text) : gort_reader_until(r, end, &text);
            if (used) gort_ctx_use(NULL);
            if (n == -ECANCELED) gort_yield();
        } while (n == -ECANCELED);
        CHECKF(n == want, "seed %" PRIu64 " at %zu: %zd, not %zd", from_seed, begin, n, want);
        if (n < 0) continue;
        CHECKF(memcmp(text, all + begin, (size_t)n) == 0 && text[n] == 0, "seed %" PRIu64,
               from_seed);
    }
    gort_wg_wait(&wg);
    gort_ctx_release(over);
    gort_reader_free(r);
    pair_over();
}

/* ---- the writer ------------------------------------------------------------------------------ */

static char sink[1 << 16];
static size_t drained(void) {
    ssize_t n = gort_recv(ends[0], sink, sizeof sink - 1, MSG_DONTWAIT);
    sink[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

static void test_writer(void) {
    pair_new();
    gort_writer *w = gort_writer_new(ends[1], 10);
    CHECK_EQ(gort_writer_write(w, "abc", 3), 3);
    CHECK_EQ(drained(), 0);
    CHECK_EQ(gort_writer_printf(w, "%d-%s", 7, "xyz"), 5);
    CHECK_EQ(drained(), 0);
    CHECK_EQ(gort_writer_write(w, "defg", 4), 4); /* no room: what was there goes first */
    CHECK_EQ(drained(), 8);
    CHECK_STR(sink, "abc7-xyz");
    CHECK_EQ(gort_writer_printf(w, "%s", "0123456789abcdef"), 16);
    CHECK_EQ(gort_writer_flush(w), 0);
    CHECK_EQ(drained(), 20);
    CHECK_STR(sink, "defg0123456789abcdef");
    CHECK_EQ(gort_writer_printf(w, "123456789"), 9);
    CHECK_EQ(gort_writer_write(w, "", 0), 0);
    CHECK_EQ(gort_writer_write(w, "and a long one", 14), 14);
    CHECK_EQ(gort_writer_flush(w), 0);
    CHECK_EQ(drained(), 23);
    CHECK_STR(sink, "123456789and a long one");
    CHECK_EQ(gort_writer_write(w, "gone", 4), 4);
    gort_writer_free(w); /* does not flush */
    CHECK_EQ(drained(), 0);
    gort_writer_free(NULL);
    pair_over();
}

/* A peer that does not read: the error of a context loses nothing, and the writer goes on. */
static void test_writer_goes_on(void) {
    size_t taken = 0, got = 0;
    pair_new();
    gort_writer *w = gort_writer_new(ends[1], 1000);
    gort_ctx *over = gort_ctx_new(NULL);
    gort_ctx_cancel(over);
    gort_ctx_use(over);
    for (ssize_t n = 0; n >= 0;) {
        char piece[300];
        for (size_t i = 0; i < sizeof piece; i++) piece[i] = (char)((taken + i) % 251);
        n = gort_writer_write(w, piece, sizeof piece);
        CHECK(n == (ssize_t)sizeof piece || n == -ECANCELED);
        if (n > 0) taken += (size_t)n;
    }
    CHECK_EQ(gort_writer_flush(w), -ECANCELED);
    CHECK_EQ(gort_writer_printf(w, "%300d", 1), -ECANCELED);
    gort_ctx_use(NULL);
    gort_ctx_release(over);
    for (size_t n; (n = drained()) > 0;)
        for (size_t i = 0; i < n; i++) CHECK_EQ((unsigned char)sink[i], got++ % 251);
    CHECK_EQ(gort_writer_flush(w), 0);
    for (size_t n; (n = drained()) > 0;)
        for (size_t i = 0; i < n; i++) CHECK_EQ((unsigned char)sink[i], got++ % 251);
    CHECK_EQ(got, taken);
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_EQ(gort_writer_write(w, "x", 1), 1);
    CHECK_EQ(gort_writer_flush(w), -EPIPE);
    gort_writer_free(w);
    CHECK_EQ(gort_close(ends[1]), 0);
}

/* The deadline of a reader is that of every later call; what had come stays. */
static void test_deadlines(void) {
    pair_new();
    gort_reader *r = gort_reader_new(ends[0], 0);
    put("half a ");
    gort_reader_deadline(r, gort_now() + 5 * GORT_MS);
    CHECK_EQ(line_error(r), -ETIMEDOUT);
    CHECK_EQ(line_error(r), -ETIMEDOUT);
    put("line\nx");
    check_line(r, "half a line"); /* there: one attempt */
    CHECK_EQ(line_error(r), -ETIMEDOUT);
    char some[8];
    CHECK_EQ(gort_reader_read(r, some, sizeof some), 1);
    CHECK_EQ(gort_reader_read(r, some, sizeof some), -ETIMEDOUT);
    gort_reader_deadline(r, GORT_FOREVER);
    put("more\n");
    check_line(r, "more");
    gort_reader_free(r);

    gort_writer *w = gort_writer_new(ends[1], 1000);
    char piece[300] = "";
    gort_writer_deadline(w, gort_now() + 5 * GORT_MS);
    ssize_t n;
    while ((n = gort_writer_write(w, piece, sizeof piece)) == (ssize_t)sizeof piece) {}
    CHECK_EQ(n, -ETIMEDOUT);
    CHECK_EQ(gort_writer_flush(w), -ETIMEDOUT);
    while (drained() > 0) {}
    gort_writer_deadline(w, GORT_FOREVER);
    CHECK_EQ(gort_writer_flush(w), 0);
    gort_writer_free(w);
    pair_over();
}

static int body(int argc, char **argv) {
    (void)argc, (void)argv;
    test_lines();
    test_byte_by_byte();
    test_too_long();
    test_limits();
    test_errors();
    uint64_t seed = stress_seed() % 1000000007;
    for (int i = 0; i < 60 / TEST_SCALE + 1; i++) random_stream(seed + (uint64_t)i + 1);
    test_writer();
    test_writer_goes_on();
    test_deadlines();
    return 0;
}

int main(int argc, char **argv) {
    if (!test_simulated()) { /* without a runtime, on a plain thread */
        test_lines();
        test_limits();
        test_writer();
    }
    return gort_main(body, argc, argv);
}
