# The product of all features (tests/product), every pair and then PRODUCT_SECONDS of random scenes,
# for each library and under the sanitizers: tests/script/product.sh.
set -u
[ -z "$SAN" ] || { echo 'skipped: it builds the sanitizers itself'; exit 77; }
export PRODUCT_SECONDS=${PRODUCT_SECONDS:-120} PRODUCT_SEED=${PRODUCT_SEED:-$(date +%s)}
failed=0
for with in static shared lean hook preload; do
    echo "$with:"
    PRODUCT_WITH=$with bash tests/script/product.sh || failed=1
done
for variant in DEBUG=1 SAN=address SAN=thread; do
    echo "$variant:"
    $MAKE -s "$variant" lib >"$WORK/build.log" 2>&1 || { cat "$WORK/build.log"; exit 1; }
    san=${variant#SAN=} dir=$OUT/variant-${variant#*=}
    [ "$variant" = DEBUG=1 ] && san='' dir=$OUT/variant-debug
    OUT=$dir SAN=$san bash tests/script/product.sh || failed=1
done
exit $failed
