#!/bin/bash
# The hook with real servers and clients: make test-servers, and part of make test (QUICK=1, by
# tests/script/server_*.sh). Each server is started on the loopback in a temporary directory. What
# is missing is installed from Debian's packages where this runs as root (`run.sh install` does just
# that, which make test calls first), else that test is skipped with a word.
#
# After the four, a crowd each of more libraries (tests/libraries): 500 goroutines, right results,
# few threads. Only in make test-servers, but for those that need no server.
#
#   OUT       the build     LIMIT_MS  for 200 calls of 200 ms on a slow machine (1000)
#   STRICT=1  throughput is judged too        T  a substring picks tests
#   QUICK=1   nothing is judged by the clock, nothing is installed; 77 if nothing could be run
set -u
cd "$(dirname "$0")/../.." || exit 1
OUT=${OUT:-build} CC=${CC:-cc} T=${T:-}
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
apt() { # RUNLEVEL: no service is started
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
        -o DPkg::Lock::Timeout=60 \
        -o Acquire::Retries=1 -o Acquire::http::Timeout=15 "$@" >>"$work/apt.log" 2>&1 </dev/null
}
export -f apt
fetch() { timeout -k 5 90 bash -c 'apt install --download-only "$@"' - "$@"; }
# Only what comes from the net has a time limit: dpkg is not to be interrupted.
install() { { fetch "$@" || { timeout -k 5 30 bash -c 'apt update' && fetch "$@"; }; } &&
    apt install "$@"; }

# What each test needs: a command that works where it is there, and Debian's packages.
header() { echo "#include <$1>" | $CC -E ${2:-} - ; }
has_redis() { command -v redis-server && command -v redis-cli && header hiredis/hiredis.h; }
has_postgres() { ls /usr/lib/postgresql/*/bin/initdb &&
    header libpq-fe.h -I/usr/include/postgresql; }
has_curl() { header curl/curl.h && header openssl/ssl.h && command -v openssl; }
has_sqlite() { header sqlite3.h; }
declare -A packages=([redis]='redis-server redis-tools libhiredis-dev'
    [postgres]='postgresql libpq-dev'
    [curl]='libcurl4-openssl-dev libssl-dev openssl' [sqlite]='libsqlite3-dev'
    [crowd_glib]='libglib2.0-dev pkg-config' [crowd_cxx]='g++' [crowd_openmp]='libgomp1'
    [crowd_curl]='libcurl4-openssl-dev libssl-dev openssl'
    [crowd_zmq]='libzmq3-dev' [crowd_cares]='libc-ares-dev' [crowd_kafka]='librdkafka-dev'
    [crowd_mariadb]='mariadb-server libmariadb-dev' [crowd_ldap]='slapd libldap-dev'
    [crowd_ssh2]='openssh-server libssh2-1-dev')
has_crowd_glib() { pkg-config --exists glib-2.0; }
has_crowd_cxx() { echo '#include <semaphore>' | ${CXX:-c++} -std=c++20 -x c++ -E -; }
has_crowd_openmp() { echo 'int main(void) { return 0; }' | $CC -fopenmp -x c - -o "$work/omp"; }
has_crowd_curl() { has_curl; }
has_crowd_zmq() { header zmq.h; }
has_crowd_cares() { header ares.h; }
has_crowd_kafka() { header librdkafka/rdkafka.h; }
has_crowd_mariadb() { command -v mariadb_config && command -v mariadb-install-db &&
    [ -x "$(maria_server)" ]; }
has_crowd_ldap() { header ldap.h && [ -x /usr/sbin/slapd ]; }
has_crowd_ssh2() { header libssh2.h && [ -x /usr/sbin/sshd ]; }
maria_server() { PATH=$PATH:/usr/sbin command -v mariadbd; }
has() { "has_$1" >/dev/null 2>&1; }
need() { has "$1" || { skip "$1 needs ${packages[$1]}"; return 1; }; }

# Before the tests, which have a time limit: what is missing, if this is root on Debian. A failure
# is no test's: what is not there then is skipped with a word.
install_missing() {
    local t missing=
    for t in $wanted_now; do has $t || missing+=" ${packages[$t]}"; done
    [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    echo "for the hook's tests with servers:$missing"
    install $missing && return
    tail -2 "$work/apt.log"
    echo 'could not be installed: what needs them is skipped'
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
    local as= pg
    need postgres || return
    pg=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
    mkdir "$work/pg"
    if [ "$(id -u)" = 0 ]; then
        chown postgres "$work/pg"
        as='setpriv --reuid postgres --regid postgres --clear-groups'
    fi
    $as "$pg/initdb" -D "$work/pg/data" -A trust -U postgres --no-sync >"$work/initdb.log" 2>&1 ||
        { cat "$work/initdb.log"; skip 'initdb does not work here'; return; }
    where='host=127.0.0.1 port=PORT user=postgres dbname=postgres'
    where+=' sslmode=disable gssencmode=disable'
    start "exec $as $pg/postgres -D $work/pg/data -k $work/pg -p PORT -c max_connections=250 \
        -c fsync=off -c listen_addresses=127.0.0.1" \
        "[ \"\$($pg/psql '$where' -Atc 'show data_directory')\" = $work/pg/data ]" ||
        { skip 'postgres does not start here'; return; }
    where=${where//PORT/$port}
    build database -I/usr/include/postgresql -lpq && run "$work/database" "$where"
    judge 'examples/hook/database' $?
    run "$work/database" "$where" --threads
    judge 'examples/hook/database with pthreads' $?
    if build_compact database -I/usr/include/postgresql -lpq; then
        run "$work/database-compact" "$where"
        judge 'examples/hook/database with compact stacks' $?
    fi
    [ -n "${QUICK:-}" ] || compare_memory
    build postgres -I/usr/include/postgresql -lpq && run "$work/postgres" "$where" $pid
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
test_crowd_openmp() { crowd_alone openmp -fopenmp -Wno-unused-function; }
test_crowd_zmq() { crowd_alone zmq -lzmq; }
test_crowd_cares() { crowd_alone cares -lcares; }
test_crowd_kafka() { crowd_alone kafka -lrdkafka; }

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
    local as= user=
    need crowd_mariadb || return
    mkdir "$work/maria"
    if [ "$(id -u)" = 0 ]; then
        chown mysql "$work/maria"
        as='setpriv --reuid mysql --regid mysql --clear-groups'
    fi
    $as mariadb-install-db --no-defaults --datadir="$work/maria/data" \
        --auth-root-authentication-method=normal --skip-test-db \
        >"$work/install.log" 2>&1 ||
        { tail -3 "$work/install.log"; skip 'mariadb-install-db does not work here'; return; }
    start "exec $as $(maria_server) --no-defaults --datadir=$work/maria/data \
        --socket=$work/maria/socket --port=PORT --bind-address=127.0.0.1 --max-connections=2000 \
        --back-log=2000 --skip-name-resolve" \
        'mariadb --no-defaults -h 127.0.0.1 -P PORT -u root -e "select 1"' ||
        { skip 'mariadbd does not start here'; return; }
    crowd mariadb $(mariadb_config --include) -lmariadb && run "$work/crowd_mariadb" "$port"
    judge 'a crowd of mariadb' $?
}

test_crowd_ldap() {
    need crowd_ldap || return
    mkdir -p "$work/ldap/data"
    printf '%s\n' 'include /etc/ldap/schema/core.schema' "pidfile $work/ldap/pid" \
        "argsfile $work/ldap/args" 'modulepath /usr/lib/ldap' 'moduleload back_mdb' \
        'database mdb' 'suffix "dc=crowd"' "directory $work/ldap/data" >"$work/ldap/conf"
    start "exec /usr/sbin/slapd -d 0 -f $work/ldap/conf -h ldap://127.0.0.1:PORT" \
        "bash -c '</dev/tcp/127.0.0.1/PORT'" || { skip 'slapd does not start here'; return; }
    crowd ldap -lldap -llber && run "$work/crowd_ldap" "ldap://127.0.0.1:$port"
    judge 'a crowd of ldap' $?
}

test_crowd_ssh2() {
    need crowd_ssh2 || return
    ssh-keygen -q -t ed25519 -N '' -f "$work/hostkey" || { skip 'no ssh-keygen'; return; }
    [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
    start "exec /usr/sbin/sshd -D -e -f /dev/null -p PORT -h $work/hostkey \
        -o ListenAddress=127.0.0.1 -o PidFile=none -o MaxStartups=2000 \
        -o LoginGraceTime=600 -o UsePAM=no" \
        "bash -c '</dev/tcp/127.0.0.1/PORT'" || { skip 'sshd does not start here'; return; }
    crowd ssh2 -lssh2 && run "$work/crowd_ssh2" "$port"
    judge 'a crowd of ssh2' $?
}

few='redis postgres curl sqlite'
crowds='crowd_glib crowd_cxx crowd_openmp crowd_curl crowd_zmq crowd_cares crowd_kafka'
crowds+=' crowd_mariadb crowd_ldap crowd_ssh2'
wanted_now="$few $crowds"
[ "${1:-}" = install ] && wanted_now=$few
[ -n "${QUICK:-}" ] || install_missing
[ "${1:-}" = install ] && exit 0
case $T in crowd*) few= ;; esac # "curl" is not meant by "crowd_curl"
[ -z "${QUICK:-}" ] || case $T in crowd*) ;; *) crowds= ;; esac
for t in $few $crowds; do
    wanted $t && test_$t
done
echo "servers: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
