# The product of all features (tests/product): every pair of words once, PRODUCT_SECONDS of random
# scenes behind it, with the library that PRODUCT_WITH names: static (as usual), shared, hook,
# preload, lean. A seed of the day; what is found comes with the text of its scene. What traces hold
# is looked at in the long run only.
set -u
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
flags="-std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -fno-omit-frame-pointer -g -O1"
lib=$OUT/libgort.a here=$(cd "$OUT" && pwd)
case ${PRODUCT_WITH:-static} in
    static) ;;
    shared) lib="-L$OUT -lgort -Wl,-rpath,$here" ;;
    lean) lib=$OUT/libgort-lean.a flags="$flags -DLEAN" ;;
    hook)
        lib="-L$OUT -Wl,--no-as-needed -lgort-hook -lgort -Wl,-rpath,$here"
        export PRODUCT_HOOKED=1 ;;
    preload)
        lib="-L$OUT -lgort -Wl,-rpath,$here"
        export PRODUCT_HOOKED=1 PRODUCT_PRELOAD="$here/libgort-hook.so" ;;
    *) echo "PRODUCT_WITH=$PRODUCT_WITH is nothing"; exit 1 ;;
esac
# shellcheck disable=SC2086
$CC $flags ${SAN:+-fsanitize=$SAN} -pthread -Iinclude tests/product/*.c $lib -lm \
    -o "$WORK/product" || exit 1
$CC -O1 -g tests/lib/jsontrace_check.c -o "$WORK/json" || exit 1
$CC -O1 -g tests/lib/pftrace_check.c -o "$WORK/pf" || exit 1
[ "${PRODUCT_SECONDS:-0}" = 0 ] || export PRODUCT_JSON="$WORK/json" PRODUCT_PF="$WORK/pf"
"$WORK/product" "${PRODUCT_SEED:-$(date +%j)}" "${PRODUCT_SECONDS:-0}"
