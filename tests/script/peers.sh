# bench/peers: a peer that is not there, or does not build, is left out with a word, and nothing of
# an earlier build stays; bench/run takes those that it finds, with the workloads that they list.
set -eu
fail() { echo "$*"; [ ! -e "$WORK/said" ] || cat "$WORK/said"; exit 1; }
says() { grep -q -- "$1" "$WORK/said" || fail "it does not say: $1"; }
export CXX=false RUSTC=false
bench=$WORK/bench peers=$WORK/checkouts
mkdir -p "$bench" "$peers/libdill" "$peers/tokio"
for p in libdill argobots; do
    printf '#!/bin/sh\n' >"$bench/peer_$p"
    chmod +x "$bench/peer_$p"
    echo old >"$bench/peer_$p.version"
done

bench/peers "$bench" "$peers" >"$WORK/said" 2>&1 || fail 'it fails'
says '^  no libdill: '
says "^  no tokio: needs $peers/pin-project-lite"
says '^  without boost_fiber argobots libfiber photon libgo: not here'
[ -z "$(ls "$bench" | grep -v '^peers$')" ] || fail "left: $(ls "$bench")"
grep -q . "$bench/peers/libdill.log" || fail 'what the build said was not kept'
bench/peers "$bench" >"$WORK/said" 2>&1 || fail 'it fails without peers'
says 'without boost_fiber libdill argobots'

. tests/lib/deps.sh
use_deps
if lack python >/dev/null; then exit 0; fi
# gort, and two peers: one has yield with one thread only, one has nothing.
printf '#!/bin/sh\necho "$1 20 ns/op"\n' >"$bench/bench"
printf '#!/bin/sh\n[ "$1" != list ] || { [ $WORKERS = 2 ] || echo yield; exit; }\n%s\n' \
    'echo "$1 30 ns/op"' >"$bench/peer_some"
printf '#!/bin/sh\n[ "$1" = list ]\n' >"$bench/peer_none"
echo '1.2 of a day' >"$bench/peer_some.version"
chmod +x "$bench/bench" "$bench/peer_some" "$bench/peer_none"
python3 bench/run --dir "$bench" --runs 1 --out "$WORK" yield >"$WORK/said" 2>&1 || fail 'it fails'
[ "$(grep -c '^yield ' "$WORK/said")" = 2 ] || fail 'not two rows'
says '^yield  *1  *20  *ns/op  *30$'
says '^yield  *2  *20  *ns/op$'
grep -q '"some": "1.2 of a day"' "$WORK/results.json" || fail 'no version'
if grep FAILED "$WORK/said"; then exit 1; fi
