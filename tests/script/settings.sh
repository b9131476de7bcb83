# Every setting of GORT_DEBUG that the library knows is in the manual, and the other way round.
set -eu
sed -n 's/^    {"\([a-z]*\)", AT(.*/\1/p
    s/.*word_is(s, name, "\([a-z]*\)").*/\1/p' src/base/env.c | sort >"$WORK/code"
sed -n 's/^\.It Cm \([a-z]*\) Ns =.*/\1/p' man/gort_debug.3 | sort >"$WORK/manual"
[ -s "$WORK/code" ]
diff -u "$WORK/code" "$WORK/manual"
