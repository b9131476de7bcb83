/* A program of some lines, whose tables the fuzzer begins with. */
#include <stdio.h>
#include <string.h>

static int words(const char *s) {
    int n = 0;
    for (; *s; s++) {
        if (*s == ' ') continue;
        n++;
        while (s[1] && s[1] != ' ') s++;
    }
    return n;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        size_t length = strlen(argv[i]);
        printf("%zu %d\n", length, words(argv[i]));
    }
    return argc > 9;
}
