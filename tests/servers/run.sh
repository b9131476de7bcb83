#!/bin/bash
# The hook with real servers and clients: make test-servers, and part of make test (QUICK=1, by
# tests/script/server_*.sh). Each server is started on the loopback in a temporary directory. What
# is missing is brought into build/deps first (tests/deps; make test has done so before), and where
# that cannot be, the test is skipped with a word. Nothing is installed.
#
# After the four, a crowd each of more libraries (tests/libraries): 500 goroutines, right results,
# few threads. Only in make test-servers, but for those that need no server.
#
#   OUT       the build     LIMIT_MS  for 200 calls of 200 ms on a slow machine (1000)
#   STRICT=1  throughput is judged too        T  a substring picks tests
#   OWN_THREAD=1  each goroutine is a thread to libc (gort_attr.thread)
#   QUICK=1   nothing is judged by the clock, nothing is brought; 77 if nothing could be run
set -u
cd "$(dirname "$0")/../.." || exit 1
OUT=${OUT:-build} CC=${CC:-cc} T=${T:-}
. tests/lib/deps.sh
case $OUT in /*) ;; *) OUT=$PWD/$OUT ;; esac
export GORT_MAXPROCS=${GORT_MAXPROCS:-2}
work=$(mktemp -d "${TMPDIR:-/tmp}/gort-servers.XXXXXX") || exit 1
chmod 755 "$work"
export work
pids=() passed=0 failed=0 skipped=0
cleanup() {
    for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; done
    wait 2>/dev/null
    rm -rf "$work" || { sleep 1; rm -rf "$work"; } # children of a killed server may still write
}
trap cleanup EXIT
trap 'exit 1' INT TERM

skip() {
    echo "skipped: $*"
    skipped=$((skipped + 1))
}
need() { # a test's name, which is that of what it needs
    local words
    if words=$(lack "${1#crowd_}"); then skip "$1 $words"; return 1; fi
}

# Some servers refuse to run for root. They run as nobody then, who may read the tree by a
# capability where its mode forbids it. Sets $as, which goes before the command.
unprivileged() { # its directory, its program, a command that works where both can be read
    local nobody='setpriv --reuid 65534 --regid 65534 --clear-groups' dir=$1 name=$2 c
    shift 2
    as=
    [ "$(id -u)" = 0 ] || return 0
    chown 65534:65534 "$dir"
    for c in '' dac_read_search dac_override; do
        # access(2) goes by the capability only with the securebit
        as=$nobody${c:+" --securebits +no_setuid_fixup --inh-caps +$c --ambient-caps +$c"}
        $as sh -c 'cd "$0" && "$@"' "$dir" "$@" >/dev/null 2>&1 && return
    done
    skip "$name does not run for root, and there is no way to be nobody"
    return 1
}

build() { # name flags...
    local name=$1 from=tests/servers
    shift
    [ -e "$from/$name.c" ] || from=examples/hook
    $CC -O2 -g -std=gnu11 -Wall -Wno-unused-function -Iinclude "$from/$name.c" -o "$work/$name" \
        -L"$OUT" \
        -Wl,-rpath,"$OUT" -Wl,--no-as-needed -lgort-hook -lgort "$@" -lpthread
}
# With stacks that start at 1.5 KB. The library is in the program then, and has to be visible for
# the hook.
build_compact() { # name flags...
    local name=$1
    shift
    [ -e "$OUT/libgort_split.a" ] || return 1
    $CC -fuse-ld=gold -O2 -g -std=gnu11 -fsplit-stack -maccumulate-outgoing-args -Iinclude \
        "examples/hook/$name.c" -o "$work/$name-compact" \
        "$OUT/libgort_split.a" -Wl,-E -L"$OUT" -Wl,-rpath,"$OUT" -Wl,--no-as-needed -lgort-hook \
        "$@" -lpthread \
        >"$work/log" 2>&1 || { echo "no compact build of $name: $(head -1 "$work/log")"; return 1; }
}

# The peak of a command's memory in KB, the kernel's for it included, by a cgroup of its own. Root.
peak() {
    local g name=gort-test.$$
    for g in /sys/fs/cgroup/memory/$name /sys/fs/cgroup/$name; do
        mkdir "$g" 2>/dev/null && [ -e "$g/cgroup.procs" ] && break
    done
    (echo $BASHPID >"$g/cgroup.procs" && exec "$@") >/dev/null 2>&1
    cat "$g/memory.max_usage_in_bytes" "$g/memory.peak" 2>/dev/null | head -1 |
        awk '{print int($1 / 1024)}'
    rmdir "$g" 2>/dev/null
}
compare_memory() {
    local none lazy compact threads with
    none=$(peak "$work/database" "$where" --idle)
    [ -n "$none" ] || { echo 'memory: no cgroup to measure it with'; return; }
    lazy=$(peak "$work/database" "$where")
    threads=$(peak "$work/database" "$where" --threads)
    compact=
    [ ! -e "$work/database-compact" ] || compact=$(peak "$work/database-compact" "$where")
    with=${compact:+, with compact stacks $((compact - none)) KB}
    echo "memory, kernel included, less what the fifty connections take:" \
        "1000 pthreads $((threads - none)) KB, 1000 goroutines $((lazy - none)) KB$with"
    [ -z "${STRICT:-}" ] || [ $((10 * (${compact:-$lazy} - none))) -le $((threads - none)) ]
    judge 'a tenth of the memory' $?
}

judge() { # name status
    if [ "$2" = 0 ]; then echo "ok    $1"; passed=$((passed + 1)); else
        echo "FAIL  $1 (status $2)"
        failed=$((failed + 1))
    fi
}
wanted() { case $1 in *"$T"*) return 0 ;; esac; return 1; }
run() { timeout -s QUIT -k 5 "${RUN_SECONDS:-250}" "$@"; }

# A server on a port of its own: below those the kernel gives out by itself, and another one where
# it was taken all the same. start 'command with PORT' 'command that works once it answers'.
start() {
    local try i
    for try in 1 2 3 4 5; do
        port=$((10000 + RANDOM % 20000))
        eval "${1//PORT/$port}" >"$work/log" 2>&1 &
        pid=$!
        disown $pid # nothing is to be said when it is killed
        pids+=($pid)
        for i in $(seq 600); do
            kill -0 $pid 2>/dev/null || break
            eval "${2//PORT/$port}" >/dev/null 2>&1 && kill -0 $pid 2>/dev/null && return 0
            sleep 0.1
        done
        kill -9 $pid 2>/dev/null
    done
    cat "$work/log"
    return 1
}

test_redis() {
    local server='exec redis-server --port PORT --bind 127.0.0.1 --save "" --dir "$work" \
        --maxclients 1000 --daemonize no'
    local answers='[ "$(redis-cli -h 127.0.0.1 -p PORT info server | tr -d "\r" |
        sed -n s/^process_id://p)" = $pid ]'
    need redis || return
    start "$server" "$answers" || { skip 'redis-server does not start here'; return; }
    build fleet -lhiredis && run "$work/fleet" "$port" >"$work/a" 2>"$work/here" &
    local other=$!
    build fleet -lhiredis -o "$work/fleet2" &&
        run "$work/fleet2" "$port" 500 >"$work/b" 2>>"$work/here"
    local status=$?
    wait $other || status=$?
    [ "$(sort -u "$work/a" "$work/b")" = '500 entries done, sum 125250' ] ||
        { cat "$work/a" "$work/b"; status=1; }
    [ "$status" = 0 ] || cat "$work/here"
    judge 'examples/hook/fleet, two processes' "$status"
    build redis -lhiredis && run "$work/redis" "$port" "$pid"
    judge redis $?
}

test_postgres() {
    local as pg
    need postgres || return
    pg=$(pg_bin)
    mkdir "$work/pg"
    unprivileged "$work/pg" postgres "$pg/postgres" --version || return
    $as "$pg/initdb" -D "$work/pg/data" -A trust -U postgres --no-sync --no-locale -E UTF8 \
        >"$work/initdb.log" 2>&1 ||
        { cat "$work/initdb.log"; skip 'initdb does not work here'; return; }
    where='host=127.0.0.1 port=PORT user=postgres dbname=postgres'
    where+=' sslmode=disable gssencmode=disable'
    start "exec $as $pg/postgres -D $work/pg/data -k $work/pg -p PORT -c max_connections=250 \
        -c fsync=off -c listen_addresses=127.0.0.1" \
        "[ \"\$($pg/psql '$where' -Atc 'show data_directory')\" = $work/pg/data ]" ||
        { skip 'postgres does not start here'; return; }
    where=${where//PORT/$port}
    build database $(pq_flags) && run "$work/database" "$where"
    judge 'examples/hook/database' $?
    run "$work/database" "$where" --threads
    judge 'examples/hook/database with pthreads' $?
    if build_compact database $(pq_flags); then
        run "$work/database-compact" "$where"
        judge 'examples/hook/database with compact stacks' $?
    fi
    [ -n "${QUICK:-}" ] || compare_memory
    build postgres $(pq_flags) && run "$work/postgres" "$where" $pid
    judge postgres $?
}

test_curl() {
    need curl || return
    build curl -lcurl || { judge curl 1; return; }
    echo 'over TLS' >"$work/page"
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/cert" -days 2 \
        -subj /CN=localhost 2>/dev/null
    start 'cd "$work" && exec openssl s_server -accept 127.0.0.1:PORT -key key -cert cert \
        -WWW -quiet' 'openssl s_client -connect 127.0.0.1:PORT </dev/null 2>/dev/null |
        grep -q "CN = localhost"' ||
        { skip 'openssl s_server does not start here'; return; }
    local secure="https://127.0.0.1:$port/page"
    start 'exec "$work/curl" serve >"$work/address"' 'test -s "$work/address"' ||
        { judge curl 1; return; }
    run "$work/curl" "$(cat "$work/address")" "$secure" $pid
    judge curl $?
    build openssl -lssl -lcrypto && run "$work/openssl"
    judge openssl $?
}

test_sqlite() {
    need sqlite || return
    build sqlite -lsqlite3 && run "$work/sqlite" "$work/db"
    judge sqlite $?
}

# ---- crowds ------------------------------------------------------------------------------------

crowd() { # name flags...
    local name=$1 cc=$CC std=gnu11 from=tests/libraries/$1.c
    shift
    [ -e "$from" ] || cc=${CXX:-c++} std=c++20 from=tests/libraries/$name.cc
    $cc -O2 -g -std=$std -Wall -Iinclude "$from" -o "$work/crowd_$name" -L"$OUT" -Wl,-rpath,"$OUT" \
        -Wl,--no-as-needed \
        -lgort-hook -lgort "$@" -lpthread
}
crowd_alone() { # name flags...: needs no server
    need "crowd_$1" || return
    crowd "$@" && run "$work/crowd_$1"
    judge "a crowd of $1" $?
}
test_crowd_glib() { crowd_alone glib $(pkg-config --cflags --libs glib-2.0 2>/dev/null); }
test_crowd_cxx() { crowd_alone cxx; }
test_crowd_zmq() { crowd_alone zmq -lzmq; }
test_crowd_cares() { crowd_alone cares -lcares; }
test_crowd_kafka() { crowd_alone kafka -lrdkafka; }

# Each of them has a team of its own, of the kernel's threads.
test_crowd_openmp() {
    need crowd_openmp || return
    crowd openmp -fopenmp &&
        OMP_WAIT_POLICY=passive CROWD_THREADS=1500 run "$work/crowd_openmp" libgomp
    judge 'a crowd of openmp' $?
}
test_crowd_libomp() {
    need crowd_libomp || return
    CC=clang crowd openmp -fopenmp &&
        KMP_BLOCKTIME=0 CROWD_THREADS=1500 run "$work/crowd_openmp" libomp
    judge 'a crowd of libomp' $?
}
test_crowd_rocksdb() {
    need crowd_rocksdb || return
    crowd rocksdb -lrocksdb && run "$work/crowd_rocksdb" "$work/rocksdb"
    judge 'a crowd of rocksdb' $?
}
test_crowd_grpc() {
    need crowd_grpc || return
    protoc -I tests/programs --cpp_out="$work" --grpc_out="$work" \
        --plugin=protoc-gen-grpc="$(command -v grpc_cpp_plugin)" echo.proto || {
        judge 'a crowd of grpc' 1
        return
    }
    crowd grpc -I"$work" "$work"/echo.pb.cc "$work"/echo.grpc.pb.cc \
        $(pkg-config --cflags --libs grpc++ protobuf) &&
        CROWD_THREADS=1500 run "$work/crowd_grpc" # its server has a thread for each call
    judge 'a crowd of grpc' $?
}

test_crowd_curl() {
    need crowd_curl || return
    crowd curl -lcurl -lssl -lcrypto || { judge 'a crowd of curl' 1; return; }
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/cert" -days 2 \
        -subj /CN=localhost 2>/dev/null
    rm -f "$work/address"
    start 'exec "$work/crowd_curl" serve "$work/key" "$work/cert" >"$work/address"' \
        'test -s "$work/address"' || { judge 'a crowd of curl' 1; return; }
    run "$work/crowd_curl" "$(cat "$work/address")"
    local status=$?
    [ $status = 0 ] || { echo 'its server:'; tail -20 "$work/log"; }
    judge 'a crowd of curl' $status
}

test_crowd_mariadb() {
    local as base
    need crowd_mariadb || return
    mkdir "$work/maria"
    base=$(command -v mariadbd)
    unprivileged "$work/maria" mariadbd "$base" --version || return
    base=${base%/sbin/*}
    $as "$(command -v mariadb-install-db)" --no-defaults --basedir="$base" \
        --datadir="$work/maria/data" --auth-root-authentication-method=normal --skip-test-db \
        >"$work/install.log" 2>&1 ||
        { tail -3 "$work/install.log"; skip 'mariadb-install-db does not work here'; return; }
    start "exec $as $base/sbin/mariadbd --no-defaults --basedir=$base --datadir=$work/maria/data \
        --socket=$work/maria/socket --port=PORT --bind-address=127.0.0.1 --max-connections=2000 \
        --back-log=2000 --skip-name-resolve" \
        'mariadb --no-defaults -h 127.0.0.1 -P PORT -u root -e "select 1"' ||
        { skip 'mariadbd does not start here'; return; }
    crowd mariadb $(maria_flags) && run "$work/crowd_mariadb" "$port"
    judge 'a crowd of mariadb' $?
}

test_crowd_ldap() {
    need crowd_ldap || return
    mkdir -p "$work/ldap/data"
    printf '%s\n' "include $(in_deps /etc/ldap/schema)/core.schema" "pidfile $work/ldap/pid" \
        "argsfile $work/ldap/args" "modulepath $(in_deps /usr/lib/ldap)" 'moduleload back_mdb' \
        'database mdb' 'suffix "dc=crowd"' "directory $work/ldap/data" >"$work/ldap/conf"
    start "exec $(in_deps /usr/sbin/slapd) -d 0 -f $work/ldap/conf -h ldap://127.0.0.1:PORT" \
        "bash -c '</dev/tcp/127.0.0.1/PORT'" || { skip 'slapd does not start here'; return; }
    crowd ldap -lldap -llber && run "$work/crowd_ldap" "ldap://127.0.0.1:$port"
    judge 'a crowd of ldap' $?
}

test_crowd_ssh2() {
    local as
    need crowd_ssh2 || return
    mkdir "$work/ssh"
    ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/hostkey" || { skip 'no ssh-keygen'; return; }
    # For root it would want a user and a directory that only an installed one has.
    unprivileged "$work/ssh" sshd test -x "$(in_deps /usr/sbin/sshd)" || return
    [ -z "$as" ] || chown 65534 "$work/ssh/hostkey"
    start "exec $as $(in_deps /usr/sbin/sshd) -D -e -f /dev/null -p PORT -h $work/ssh/hostkey \
        -o ListenAddress=127.0.0.1 -o PidFile=none -o MaxStartups=2000 \
        -o LoginGraceTime=600 -o UsePAM=no" \
        "bash -c '</dev/tcp/127.0.0.1/PORT'" || { skip 'sshd does not start here'; return; }
    crowd ssh2 -lssh2 && run "$work/crowd_ssh2" "$port"
    judge 'a crowd of ssh2' $?
}

few='redis postgres curl sqlite'
crowds='crowd_glib crowd_cxx crowd_openmp crowd_curl crowd_zmq crowd_cares crowd_kafka'
crowds+=' crowd_mariadb crowd_ldap crowd_ssh2 crowd_libomp crowd_rocksdb crowd_grpc'
case $T in crowd*) few= ;; esac # "curl" is not meant by "crowd_curl"
[ -z "${QUICK:-}" ] || case $T in crowd*) ;; *) crowds= ;; esac
picked=
for t in $few $crowds; do if wanted $t; then picked+=" $t"; fi; done
[ -n "${QUICK:-}" ] || tests/deps $(printf '%s\n' ${picked//crowd_/} | sort -u)
use_deps
for t in $picked; do test_$t; done
echo "servers: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
