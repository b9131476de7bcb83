#!/bin/bash
# The hook with real servers and clients: make test-servers. Each server is started on the loopback
# in a temporary directory. What is missing is installed from Debian's packages where this runs as
# root, else that test is skipped with a word.
#
#   OUT       the build     LIMIT_MS  for 200 calls of 200 ms on a slow machine (1000)
#   STRICT=1  throughput is judged too        T  a substring picks tests
set -u
cd "$(dirname "$0")/../.." || exit 1
OUT=${OUT:-build} CC=${CC:-cc} T=${T:-}
export GORT_MAXPROCS=${GORT_MAXPROCS:-2}
work=$(mktemp -d "${TMPDIR:-/tmp}/gort-servers.XXXXXX") || exit 1
chmod 755 "$work"
pids=() passed=0 failed=0 skipped=0
cleanup() {
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done
    wait 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

need() { # name, test command, packages: true once the command works
    local name=$1 works=$2
    shift 2
    eval "$works" >/dev/null 2>&1 && return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >"$work/apt.log" 2>&1
        eval "$works" >/dev/null 2>&1 && return 0
    fi
    echo "skip  $name: needs $*"
    skipped=$((skipped + 1))
    return 1
}
build() { # name flags...
    local name=$1 from=tests/servers
    shift
    [ -e "$from/$name.c" ] || from=examples/hook
    $CC -O2 -g -std=gnu11 -Wall -Wno-unused-function -Iinclude "$from/$name.c" -o "$work/$name" -L"$OUT" \
        -Wl,-rpath,"$PWD/$OUT" -Wl,--no-as-needed -lgort-hook -lgort "$@" -lpthread
}
judge() { # name status
    if [ "$2" = 0 ]; then echo "ok    $1"; passed=$((passed + 1)); else
        echo "FAIL  $1 (status $2)"
        failed=$((failed + 1))
    fi
}
wanted() { case $1 in *"$T"*) return 0 ;; esac; return 1; }
header() { echo "#include <$1>" | $CC -E ${2:-} - ; }
free_port() { # one that nobody listens on at this moment
    local p
    while :; do
        p=$((20000 + RANDOM % 20000))
        (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || { echo $p; return; }
    done
}
until_works() { # a command, for at most 30 s
    local i
    for i in $(seq 300); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.1
    done
    return 1
}
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

if wanted redis && need redis 'command -v redis-server && header hiredis/hiredis.h' redis-server libhiredis-dev; then
    port=$(free_port)
    redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$work" --maxclients 1000 >"$work/redis.log" 2>&1 &
    pid=$!
    pids+=($pid)
    until_works listens "$port"
    disown $pid # it is going to be killed
    build redis -lhiredis && timeout -s QUIT -k 5 120 "$work/redis" "$port" "$pid"
    judge redis $?
fi

pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
if wanted postgres && need postgres 'ls /usr/lib/postgresql/*/bin/initdb && header libpq-fe.h -I/usr/include/postgresql' postgresql libpq-dev; then
    pg=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
    port=$(free_port) as=
    mkdir "$work/pg"
    if [ "$(id -u)" = 0 ]; then
        chown postgres "$work/pg"
        as='setpriv --reuid postgres --regid postgres --clear-groups'
    fi
    $as "$pg/initdb" -D "$work/pg/data" -A trust -U postgres --no-sync >"$work/initdb.log" 2>&1 || cat "$work/initdb.log"
    $as "$pg/postgres" -D "$work/pg/data" -k "$work/pg" -p "$port" -c max_connections=250 -c fsync=off \
        -c listen_addresses=127.0.0.1 >"$work/pg.log" 2>&1 &
    pids+=($!)
    where="host=127.0.0.1 port=$port user=postgres dbname=postgres sslmode=disable gssencmode=disable"
    until_works "$pg/psql" "$where" -c 'select 1'
    build postgres -I/usr/include/postgresql -lpq && timeout -s QUIT -k 5 120 "$work/postgres" "$where"
    judge postgres $?
    build database -I/usr/include/postgresql -lpq && timeout -s QUIT -k 5 120 "$work/database" "$where"
    judge 'examples/hook/database' $?
    echo 'the same with threads:' && timeout -k 5 120 "$work/database" "$where" threads
fi

if wanted curl && need curl 'header curl/curl.h && command -v openssl' libcurl4-openssl-dev openssl; then
    port=$(free_port)
    status=1
    echo 'over TLS' >"$work/page"
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/cert" -days 2 -subj /CN=localhost 2>/dev/null
    (cd "$work" && exec openssl s_server -accept "127.0.0.1:$port" -key key -cert cert -WWW -quiet) >"$work/tls.log" 2>&1 &
    pids+=($!)
    if build curl -lcurl; then
        "$work/curl" serve >"$work/address" &
        pids+=($!)
        until_works test -s "$work/address"
        until_works listens "$port"
        timeout -s QUIT -k 5 120 "$work/curl" "$(cat "$work/address")" "https://127.0.0.1:$port/page"
        status=$?
    fi
    judge curl $status
fi

if wanted sqlite && need sqlite 'header sqlite3.h' libsqlite3-dev; then
    build sqlite -lsqlite3 && timeout -s QUIT -k 5 120 "$work/sqlite" "$work/db"
    judge sqlite $?
fi
echo "servers: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
