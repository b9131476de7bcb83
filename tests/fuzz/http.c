/*
 * The page's HTTP parser under a coverage-guided fuzzer (clang's libFuzzer, address and undefined
 * behaviour sanitizers): any bytes, also cut anywhere, give a verdict and strings that end; what is
 * understood whole is understood the same way however it arrives.
 *
 *     make fuzz FUZZ_SECONDS=600
 */
#include "inspect/http.h"

#include <stdlib.h>

static void must(bool ok) {
    if (!ok) abort();
}

static void look_at_params(const HttpRequest *r) {
    static const char *const names[] = {"id",    "filter",  "seconds", "token", "format",
                                        "limit", "minutes", "debug",   ""};
    for (size_t i = 0; i < count_of(names); i++) {
        char small[8], large[1100];
        bool a = http_param(r, names[i], small, sizeof small),
             b = http_param(r, names[i], large, sizeof large);
        must(!a || (b && strcmp(small, large) == 0)); /* what fits in little is the same in much */
        if (b) must(memchr(large, 0, sizeof large) != NULL);
        http_number(r, names[i], 3);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > HTTP_HEAD) size = HTTP_HEAD;
    char *exact = malloc(size ? size : 1); /* of its very size: a read past the end is found */
    HttpRequest r, again;
    memcpy(exact, data, size);
    int status = http_parse(exact, size, &r);
    must(status == 0 || status == 200 || (status >= 400 && status < 600));
    must(memchr(r.path, 0, sizeof r.path) && memchr(r.query, 0, sizeof r.query));
    must(memchr(r.host, 0, sizeof r.host) && memchr(r.token, 0, sizeof r.token));
    if (status == 200) {
        must(r.path[0] == '/');
        look_at_params(&r);
    }
    if (size > 0) { /* a byte less: not yet, or the same refusal; never something else */
        char *less = malloc(size);
        memcpy(less, data, size - 1);
        int before = http_parse(less, size - 1, &again);
        must(before == 0 || before == status);
        free(less);
    }
    free(exact);
    return 0;
}
