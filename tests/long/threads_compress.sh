# pbzip2, xz, zstd and pigz with several threads: the same bytes as with the kernel's threads, and
# back again; a file that is cut off.
set -u
. tests/lib/threads.sh
begin compress
# words of a small vocabulary, numbers, and what cannot be compressed
{
    LC_ALL=C awk 'BEGIN { for (i = 0; i < 400000; i++) {
        n = (n * 1103515245 + 12345) % 2147483648; printf "word%d %d\n", n % 997, i } }'
    head -c 3000000 "$hook" </dev/null
    for i in $(seq 8); do openssl enc -aes-128-ctr -K 0$i -iv 0 -in "$hook" 2>/dev/null; done
} >"$WORK/plain"
sum() { md5sum <"$1" | cut -d ' ' -f 1; }
want=$(sum "$WORK/plain")

trip() { # name 'compress' 'decompress'
    local way first=
    for way in $ways; do
        under $way $2 <"$WORK/plain" >"$WORK/packed" || fail "$1, $way: $?"
        under $way $3 <"$WORK/packed" >"$WORK/back" || fail "$1 back, $way: $?"
        [ "$(sum "$WORK/back")" = "$want" ] || fail "$1, $way: other bytes came back"
        first=${first:-$(sum "$WORK/packed")}
        [ "$(sum "$WORK/packed")" = "$first" ] || fail "$1, $way: packed otherwise than natively"
        head -c 100000 "$WORK/packed" >"$WORK/cut"
        ! under $way $3 <"$WORK/cut" >/dev/null 2>&1 || fail "$1: half is enough?"
    done
    echo "$1: the same on $ways"
}
trip 'pbzip2 -p8' 'pbzip2 -c -p8 -b1' 'pbzip2 -dc -p8'
trip 'xz -T4' 'xz -1 -T4 --block-size=1MiB' 'xz -dc -T4'
trip 'zstd -T4' 'zstd -q -3 -T4 -B1048576' 'zstd -q -dc -T4'
trip 'pigz -p 8' 'pigz -n -p 8' 'pigz -dc -p 8'
