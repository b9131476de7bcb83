# examples/tls.c: TLS by OpenSSL in goroutines, without the hook. The certificate is made here.
set -eu
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}" # what lives at the end is left
. tests/lib/deps.sh
use_deps
if why=$(lack tls); then echo "skipped: $why"; exit 77; fi
bad=0
fail() { echo "$*"; bad=1; }
certificate() { # file name
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj "/CN=$2" -addext "subjectAltName=DNS:$2" -keyout "$WORK/$1.key" \
        -out "$WORK/$1.pem" 2>/dev/null
}
certificate good localhost
certificate other other.example
tls=$WORK/tls
"$CC" -O1 -g ${SAN:+-fsanitize=$SAN} -Wall -Wextra -Werror -Iinclude examples/tls.c \
    "$OUT/libgort.a" -lssl -lcrypto -lpthread -o "$tls"

for procs in 1 2 16; do
    GORT_MAXPROCS=$procs timeout -k 1 100 "$tls" "$WORK/good.pem" "$WORK/good.key" >"$WORK/out" ||
        fail "its own clients ($procs)"
    grep -qx '100 clients are served' "$WORK/out" || fail "not all are served ($procs)"
done
# Whose certificate has another name is not trusted; whose key is another's does not start.
if timeout -k 1 100 "$tls" "$WORK/other.pem" "$WORK/other.key" >/dev/null 2>"$WORK/err"; then
    fail "a certificate of another host is accepted"
fi
grep -q '^tls: Protocol error' "$WORK/err" || fail "said: $(cat "$WORK/err")"
if "$tls" "$WORK/good.pem" "$WORK/other.key" 2>"$WORK/err"; then fail 'a wrong key'; fi
grep -q 'key values mismatch' "$WORK/err" || fail "said: $(cat "$WORK/err")"

: >"$WORK/log"
"$tls" "$WORK/good.pem" "$WORK/good.key" 127.0.0.1:0 >"$WORK/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || :' EXIT
until grep -q listening "$WORK/log"; do
    kill -0 $server || { cat "$WORK/log"; exit 1; }
    sleep 0.1
done
port=$(sed -n 's|.*:\([0-9]*\)/$|\1|p' "$WORK/log")
descriptors() { ls /proc/$server/fd | wc -l; }
before=$(descriptors)
to=/dev/tcp/127.0.0.1/$port

# Byte by byte, each in a record of its own; two requests on one connection.
exec 5> >(timeout 100 openssl s_client -quiet -connect "127.0.0.1:$port" -CAfile "$WORK/good.pem" \
    >"$WORK/answers" 2>/dev/null)
text=$'GET / HTTP/1.1\r\n\r\n'
for round in 1 2; do
    for ((i = 0; i < ${#text}; i++)); do printf %s "${text:i:1}" >&5; done
    until [ "$(grep -cx 'Hello, World!' "$WORK/answers" 2>/dev/null)" = $round ]; do sleep 0.1; done
done
exec 5>&-
if has http; then
    body=$(curl -sS --max-time 60 --cacert "$WORK/good.pem" \
        --connect-to "localhost:$port:127.0.0.1:$port" "https://localhost:$port/") &&
        [ "$body" = "Hello, World!" ] || fail "curl got $body"
fi
# Not TLS: an alert, and the end. One who says nothing: the end, after the time for a handshake. One
# who goes away in the middle of it.
exec 6<>"$to"
printf '\026\003\001\000\005hello' >&6
timeout 100 cat <&6 >"$WORK/alert" || :
[ -s "$WORK/alert" ] || fail 'no alert'
exec 6<>"$to" 7<>"$to"
exec 7<&-
timeout 100 cat <&6 >"$WORK/silent" || :
[ ! -s "$WORK/silent" ] || fail 'a silent client hears something'
exec 6<&-
# Nothing of all this is left.
until [ "$(descriptors)" -le "$before" ]; do sleep 0.1; done
kill -0 $server || fail 'the server has ended'
exit $bad
