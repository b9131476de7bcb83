# mariadbd with a thread for each of 2,000 connections, every answer checked, KILL of queries and
# connections (tests/programs/mariadb.c), mariadb-slap, the end by SIGTERM. Once the threads of the
# client are goroutines, too.
set -u
. tests/lib/threads.sh
begin mariadb
most=2000 SECONDS_EACH=100
ulimit -n $((4 * most)) 2>/dev/null || most=$((($(ulimit -n) - 200) / 2))
mkdir "$WORK/maria"
base=$(command -v mariadbd)
base=${base%/sbin/*}
as=
[ "$(id -u)" != 0 ] || as=--user=root
"$(command -v mariadb-install-db)" --no-defaults --basedir="$base" --datadir="$WORK/maria/data" \
    --auth-root-authentication-method=normal $as >"$WORK/install" 2>&1 ||
    { tail -3 "$WORK/install"; echo 'skipped: mariadb-install-db does not work here'; exit 77; }
$CC -O2 tests/programs/mariadb.c -o "$WORK/load" $(maria_flags) -pthread ||
    fail 'it does not compile'
client() { timeout 50 mariadb --no-defaults -h 127.0.0.1 -P "$port" -u root "$@"; }

serve() { # way, the client's way, how many connections
    local log=$WORK/log.$1.$2 many=$3
    port=$(spare_port)
    start "$1" "$base/sbin/mariadbd" --no-defaults $as --basedir="$base" \
        --datadir="$WORK/maria/data" --socket="$WORK/maria/socket" --port="$port" \
        --bind-address=127.0.0.1 --max-connections=$((many + 100)) --back-log=$many \
        --skip-name-resolve --thread-handling=one-thread-per-connection \
        --innodb-flush-log-at-trx-commit=0 >"$log" 2>&1
    await 'client -e "select 1"' || { cat "$log"; fail "$1: it does not begin"; }
    under "$2" "$WORK/load" "$port" $many >"$WORK/out" 2>&1 ||
        { echo "it ended with $?"; cat "$WORK/out"; tail -50 "$log"; fail "$1, client $2"; }
    tail -n 1 "$WORK/out"
    timeout 100 mariadb-slap --no-defaults -h 127.0.0.1 -P "$port" -u root --concurrency=100 \
        --iterations=1 --auto-generate-sql --auto-generate-sql-load-type=mixed \
        --number-of-queries=1000 \
        --create-schema=slap >"$WORK/out" 2>&1 || { cat "$WORK/out"; fail "$1: mariadb-slap"; }
    echo "$1: $(threads_of $server) kernel threads now"
    kill -TERM $server
    ended || { tail -50 "$log"; fail "$1: SIGTERM ended it with $status"; }
    grep -q 'Shutdown complete' "$log" || { tail "$log"; fail "$1: no clean end"; }
}
serve native native 300
serve 1 native 300
serve 2 2 $most
serve 16 native 300
