# memcached with four workers and redis-server with four threads for its connections, under a load
# that looks at every answer (tests/programs/cache_load.py); the end by SIGTERM.
set -u
. tests/lib/threads.sh
begin memcached redis python
as=
[ "$(id -u)" != 0 ] || as='-u root'
serve() { # way, name, protocol, command...
    local way=$1 name=$2 log=$WORK/$2.$1
    shift 2
    start $way "$@" >"$log" 2>&1
    await "(exec 3<>/dev/tcp/127.0.0.1/$port)" ||
        { cat "$log"; fail "$name, $way: it does not begin"; }
    python3 tests/programs/cache_load.py $name "$port" 200 >"$WORK/out" 2>&1 ||
        { cat "$WORK/out" "$log"; fail "$name, $way: the load"; }
    echo "$name, $way: $(cat "$WORK/out"), $(threads_of $server) kernel threads"
    kill -TERM $server
    ended || { cat "$log"; fail "$name, $way: SIGTERM ended it with $status"; }
}
for way in $ways; do
    port=$(spare_port)
    serve $way memcached memcached $as -l 127.0.0.1 -p "$port" -t 4 -c 2000
    port=$(spare_port)
    serve $way redis redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$WORK" \
        --io-threads 4 --io-threads-do-reads yes --daemonize no
done
