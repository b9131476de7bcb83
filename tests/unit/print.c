/* The formatter: every conversion, cutting, and lines that are not torn between two writes. */
#include "../lib/white.h"
#include "base/print.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define SAYS(text, ...)                                                    \
    do {                                                                   \
        char buf_[256];                                                    \
        CHECK_EQ(print_buf(buf_, sizeof buf_, __VA_ARGS__), strlen(text)); \
        CHECK_STR(buf_, text);                                             \
    } while (0)

static void conversions(void) {
    SAYS("plain", "plain");
    SAYS("a b 7 -7 7%", "%s %c %u %d 7%%", "a", 'b', 7u, -7);
    SAYS("-9223372036854775808 18446744073709551615", "%ld %lu", INT64_MIN, UINT64_MAX);
    SAYS("ff deadbeefcafe 0x10", "%x %lx %p", 255u, 0xdeadbeefcafeUL, (void *)16);
    SAYS("[    5][00005][-0005][   -5]", "[%5d][%05d][%05d][%5d]", 5, 5, -5, -5);
    SAYS("12 34", "%zu %lld", (size_t)12, 34LL);
    char cut[8];
    CHECK_EQ(print_buf(cut, sizeof cut, "%s", "0123456789"), 7);
    CHECK_STR(cut, "0123456");
}

/* What arrives on a packet socket are single writes: each must end with a line end. */
static void whole_lines(void) {
    int p[2];
    char buf[64], got[128];
    int packets = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p) != 0) SKIP("no packet sockets");
    Out o = OUT(p[1], buf);
    for (int i = 0; i < 12; i++) out_fmt(&o, "line %d of some length\n", i);
    out_flush(&o);
    close(p[1]);
    for (ssize_t n; (n = read(p[0], got, sizeof got)) > 0; packets++) CHECK_EQ(got[n - 1], '\n');
    CHECK_EQ(packets, 6); /* two lines fit */
    close(p[0]);
}

static void json(const char *s, const char *expected) {
    char buf[256];
    Out o = OUT(-1, buf);
    out_json(&o, s);
    out_bytes(&o, "", 1);
    CHECKF(strcmp(buf, expected) == 0, "%s, not %s", buf, expected);
}

static void strings_of_json(void) {
#define U "\\ufffd"
    json("", "\"\"");
    json("a \"b\" \\ \n\x7f", "\"a \\\"b\\\" \\\\ \\u000a\\u007f\"");
    json("\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb9 \xf4\x8f\xbf\xbf \xed\x9f\xbf",
         "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb9 \xf4\x8f\xbf\xbf \xed\x9f\xbf\"");
    json("\xc3", "\"" U "\"");                   /* cut */
    json("\xe2\x82", "\"" U U "\"");             /* cut */
    json("\xf0\x9f\x90\"", "\"" U U U "\\\"\""); /* cut, and the quote is seen */
    json("\xe4 b", "\"" U " b\"");               /* Latin-1 */
    json("\x80\xff", "\"" U U "\"");
    json("\xc0\xaf\xe0\x80\xaf\xf0\x80\x80\xaf", "\"" U U U U U U U U U "\""); /* too long */
    json("\xed\xa0\x80", "\"" U U U "\"");                                     /* a surrogate */
    json("\xf4\x90\x80\x80", "\"" U U U U "\"");                               /* beyond Unicode */
#undef U
}

/* Beyond eight bytes: no half a character. */
static void name_is(const char *name, const char *expected) {
    char buf[9];
    memset(buf, 'x', sizeof buf);
    copy_name(buf, sizeof buf, name);
    CHECK_STR(buf, expected);
    for (size_t i = strlen(buf); i < sizeof buf; i++) CHECK_EQ(buf[i], 0);
}

static void names_cut(void) {
    name_is("", "");
    name_is("12345678", "12345678");
    name_is("123456789", "12345678");
    name_is("123456\xc3\xa4", "123456\xc3\xa4");
    name_is("123456\xc3\xa4!", "123456\xc3\xa4");
    name_is("1234567\xc3\xa4", "1234567");
    name_is("12345\xf0\x9f\x90\xb9", "12345");
    name_is("1234567\xf0\x9f\x90\xb9", "1234567");
    name_is("\x80\x80\x80\x80\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80");
}

static void *drain(void *arg) {
    char b[4096];
    long total = 0;
    for (ssize_t n; (n = read(*(int *)arg, b, sizeof b)) != 0;)
        if (n > 0) total += n;
    return (void *)total;
}

/* A full non-blocking pipe is waited for, not lost. */
static void full_pipe(void) {
    int p[2];
    static char big[1 << 20];
    pthread_t t;
    void *total;
    CHECK_EQ(pipe(p), 0);
    fcntl(p[1], F_SETFL, O_NONBLOCK);
    pthread_create(&t, NULL, drain, &p[0]);
    CHECK_EQ(write_all(p[1], big, sizeof big), 0);
    close(p[1]);
    pthread_join(t, &total);
    CHECK_EQ((long)total, sizeof big);
    CHECK_EQ(write_all(p[1], big, 1), -EBADF);
}

static void words_of_errors(void) {
    CHECK_STR(errno_word(-EAGAIN), "EAGAIN");
    CHECK_STR(errno_word(-ENOMEM), "ENOMEM");
    CHECK_STR(errno_word(-ENOSYS), "ENOSYS");
    CHECK_STR(errno_word(-EHWPOISON), "an error without a name");
}

static void plain_names(void) {
    char buf[100];
    Out o = OUT(-1, buf);
    out_plain(&o, "a\"b\\\n\x7f\xff\xc3\xa4\xf0\x9f\x98");
    out_bytes(&o, "", 1);
    CHECK_STR(buf, "a\"b\\\\x0a\\x7f\\xff\xc3\xa4\\xf0\\x9f\\x98");
}

int main(void) {
    plain_names();
    words_of_errors();
    conversions();
    strings_of_json();
    names_cut();
    full_pipe();
    whole_lines();
    return 0;
}
