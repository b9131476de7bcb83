# The HTTP example under wrk and curl: five million requests, a day's worth, and its memory stays as
# it was once all connections were there. REQUESTS=n for another number.
set -u
command -v wrk >/dev/null || { [ "$(id -u)" = 0 ] && apt-get install -y wrk >/dev/null 2>&1; }
command -v wrk >/dev/null || { echo 'skipped: no wrk here, and none to be installed'; exit 77; }
command -v curl >/dev/null || { [ "$(id -u)" = 0 ] && apt-get install -y curl >/dev/null 2>&1; }
command -v curl >/dev/null || { echo 'skipped: no curl here, and none to be installed'; exit 77; }
[ -z "$SAN" ] || { echo 'skipped: a sanitizer keeps memory of its own'; exit 77; }
want=${REQUESTS:-5000000} conns=200 slack_kb=2048

"$OUT/examples/http" 127.0.0.1:0 >"$WORK/log" 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null' EXIT
addr=
while [ -z "$addr" ]; do
    addr=$(sed -n 's/.*\(127\.0\.0\.1:[0-9][0-9]*\).*/\1/p' "$WORK/log")
    kill -0 $pid 2>/dev/null || { cat "$WORK/log"; exit 1; }
    sleep 0.1
done
rss() { awk '/^VmRSS/ {print $2}' /proc/$pid/status; }
fds() { ls /proc/$pid/fd | wc -l; }
threads() { awk '/^Threads/ {print $2}' /proc/$pid/status; }

# curl: the body, keep-alive over two requests, HEAD is refused politely, 1.0.
[ "$(curl -sS "http://$addr/")" = 'Hello, World!' ] || { echo 'curl: a wrong body'; exit 1; }
connects=$(curl -sS -o /dev/null -o /dev/null -w '%{num_connects} ' \
    "http://$addr/a" "http://$addr/b")
[ "$connects" = '1 0 ' ] ||
    { echo 'curl: the connection was not kept'; exit 1; }
[ "$(curl -sS --http1.0 "http://$addr/")" = 'Hello, World!' ] || { echo 'curl: HTTP/1.0'; exit 1; }
[ "$(curl -sS -o /dev/null -w '%{http_code}' -d x=1 "http://$addr/")" = 405 ] ||
    { echo 'curl: POST'; exit 1; }

fds_before=$(fds)
done_so_far=0 first= worst=0 round=0
while [ $done_so_far -lt "$want" ]; do
    wrk -t1 -c$conns -d5s "http://$addr/" >"$WORK/wrk" 2>&1 || { cat "$WORK/wrk"; exit 1; }
    if grep -E 'Socket errors|Non-2xx' "$WORK/wrk"; then cat "$WORK/wrk"; exit 1; fi
    n=$(awk '/requests in/ {print $1}' "$WORK/wrk")
    [ "${n:-0}" -gt 0 ] || { echo 'wrk made no request'; cat "$WORK/wrk"; exit 1; }
    done_so_far=$((done_so_far + n)) round=$((round + 1)) now=$(rss)
    [ $round = 1 ] && first=$now
    [ "$now" -gt $worst ] && worst=$now
    echo "$done_so_far requests, VmRSS $now kB, $(threads) threads"
done
kill -0 $pid 2>/dev/null || { echo 'the server has ended'; cat "$WORK/log"; exit 1; }
[ $worst -le $((first + slack_kb)) ] || { echo "memory grew from $first to $worst kB"; exit 1; }
# All connections are closed: their descriptors go.
for _ in $(seq 100); do [ "$(fds)" -le "$fds_before" ] && break; sleep 0.1; done
[ "$(fds)" -le "$fds_before" ] || { echo "$(fds) descriptors, $fds_before before"; exit 1; }
echo "flat: $first kB after the first round, $worst kB at most in $done_so_far requests"
