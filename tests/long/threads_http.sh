# A server by libmicrohttpd with a thread for each connection (tests/programs/http.c), and wrk with
# 5,000 of them, which looks at every answer.
set -u
. tests/lib/threads.sh
begin microhttpd
many=5000
ulimit -n $((4 * many)) 2>/dev/null || many=$((($(ulimit -n) - 100) / 2))
$CC -O2 tests/programs/http.c -o "$WORK/http" -lmicrohttpd -pthread || fail 'it does not compile'
input=$WORK/input
mkfifo "$input"

most_threads() { # pid of the server, pid of the load
    local n most=0
    while kill -0 "$2" 2>/dev/null; do
        n=$(threads_of "$1")
        [ "${n:-0}" -le $most ] || most=$n
        sleep 0.2
    done
    echo $most
}
serve() { # way
    local way=$1 port load said answered threads
    port=$(spare_port)
    start $way "$WORK/http" "$port" $((many + 500)) >"$WORK/said" 2>&1
    exec 7>"$input"
    await "grep -q ready $WORK/said" || { cat "$WORK/said"; fail "$way: it does not begin"; }
    wrk -t2 -c$many -d8 --timeout 60 -s tests/programs/http.lua "http://127.0.0.1:$port/" \
        >"$WORK/wrk" 2>&1 &
    load=$!
    threads=$(most_threads $server $load)
    wait $load
    said=$(tail -n 1 "$WORK/wrk")
    case $said in
        *' requests, 0 wrong, 0 refused, 0 broken') ;;
        *) cat "$WORK/wrk" "$WORK/said"; fail "$way: the load failed" ;;
    esac
    [ "${said%% *}" -ge $many ] || fail "$way: fewer answers than connections: $said"
    exec 7>&-
    ended || { cat "$WORK/said"; fail "$way: it ended with $status"; }
    answered=$(sed -n 's/ answered$//p' "$WORK/said")
    [ "${answered:-0}" -ge "${said%% *}" ] || fail "$way: $answered answered, wrk had $said"
    echo "$way: $said, $threads kernel threads"
    [ $way = native ] || [ "$threads" -lt $((many / 2)) ] || fail "$way: that is many threads"
}
for way in $ways; do serve $way; done
