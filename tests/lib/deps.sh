# What tests need beyond a compiler. tests/deps brings what the machine lacks into $DEPS
# (build/deps); a test that uses some of it sources this file:
#
#   use_deps          the machine's programs, headers and libraries, and those in $DEPS
#   has NEED          whether it works here
#   lack NEED...      says what is missing of them and why; false where nothing is
#   packages_of NEED  Debian's packages for it
DEPS=${DEPS:-build/deps} CC=${CC:-cc}
case $DEPS in /*) ;; *) DEPS=$PWD/$DEPS ;; esac
export DEPS

# need, scripts of make test that use it (- for none: make test-servers), packages
needs() {
    cat <<'END'
redis      server_redis,hook_preload         redis-server redis-tools libhiredis-dev
postgres   server_postgres,hook_preload      postgresql libpq-dev
curl       server_curl,crowd_curl            libcurl4-openssl-dev libssl-dev openssl
tls        tls                               libssl-dev openssl
wrk        httpd                             wrk
sqlite     server_sqlite                     libsqlite3-dev
glib       crowd_glib                        libglib2.0-dev pkg-config
gc         gc,man_examples                   libgc-dev
tcmalloc   hook_allocator                    libtcmalloc-minimal4
mandoc     man_examples                      mandoc
pkgconfig  install,gort_new                  pkg-config
cmake      install                           cmake
http       page,hook_preload,tls,httpd       curl
python     page,page_walk,page_last,picture,peers,hook_preload python3
sqlite3    hook_preload                      sqlite3
format     lint,planted                      clang-format-14
cxx        -                                 g++
browser    -                                 chromium fonts-dejavu-core
openmp     -                                 libgomp1
zmq        -                                 libzmq3-dev
cares      -                                 libc-ares-dev
kafka      -                                 librdkafka-dev
mariadb    -                                 mariadb-server libmariadb-dev
ldap       -                                 slapd libldap-dev
ssh2       -                                 openssh-server libssh2-1-dev
libomp     -                                 clang libomp-dev
rocksdb    -                                 librocksdb-dev
java       -                                 openjdk-17-jdk-headless
node       -                                 nodejs
glibc      -                                 glibc-source
compress   -                                 pbzip2 xz-utils zstd pigz openssl
microhttpd -                                 libmicrohttpd-dev wrk
memcached  -                                 memcached
apache     -                                 apache2-bin media-types
names      -                                 unbound bind9
stressng   -                                 stress-ng
ruby       -                                 ruby
ffmpeg     -                                 ffmpeg
grpc       -                                 libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc
END
}
packages_of() { needs | sed -n "s/^$1  *[^ ]*  *//p"; }

# Packages are unpacked, not installed: what they would be found by has to be said.
use_deps() {
    local dir libs= pc=
    export PATH="$PATH:/usr/sbin:/sbin"
    [ -d "$DEPS/usr" ] || return 0
    for dir in "$DEPS"/usr/lib/*-linux-gnu* "$DEPS"/lib/*-linux-gnu* "$DEPS/usr/lib" "$DEPS/lib" \
        "$DEPS"/usr/lib/*-linux-gnu*/pulseaudio; do
        [ ! -d "$dir" ] || libs=$libs${libs:+:}$dir
        [ ! -d "$dir/pkgconfig" ] || pc=$pc${pc:+:}$dir/pkgconfig
    done
    dir=$(pg_bin)
    export PATH="$PATH${dir:+:$dir}:$DEPS/usr/bin:$DEPS/usr/sbin:$DEPS/bin:$DEPS/sbin"
    export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libs"
    export LIBRARY_PATH="${LIBRARY_PATH:+$LIBRARY_PATH:}$libs"
    export PKG_CONFIG_PATH="${PKG_CONFIG_PATH:+$PKG_CONFIG_PATH:}$pc:$DEPS/usr/share/pkgconfig"
    # As with the machine's own: no warnings about what is in these headers.
    libs=$DEPS/usr/include
    for dir in "$DEPS"/usr/include/*-linux-gnu*; do [ ! -d "$dir" ] || libs=$libs:$dir; done
    export C_INCLUDE_PATH="${C_INCLUDE_PATH:+$C_INCLUDE_PATH:}$libs"
    export CPLUS_INCLUDE_PATH="${CPLUS_INCLUDE_PATH:+$CPLUS_INCLUDE_PATH:}$libs"
    [ ! -e "$DEPS/etc/ssl/openssl.cnf" ] || export OPENSSL_CONF="$DEPS/etc/ssl/openssl.cnf"
}

# ---- what has to work ---------------------------------------------------------------------------

runs() { # program...: each is there, and starts
    local p
    for p; do "$p" --version || return; done
}
links() { # header flags...: a program with them is compiled, linked and started
    local header=$1 program st
    shift
    program=$(mktemp "${TMPDIR:-/tmp}/gort-has.XXXXXX") || return
    printf '#include <stdio.h>\n#include <%s>\nint main(void) { return 0; }\n' "$header" |
        $CC -x c - -o "$program" -Wl,--no-as-needed "$@" && "$program"
    st=$?
    rm -f "$program"
    return $st
}
in_deps() { # path: the machine's, or else that in $DEPS
    if [ -e "$1" ]; then echo "$1"; else echo "$DEPS$1"; fi
}
pg_bin() { # the newest PostgreSQL of the machine, or else of $DEPS
    local root dir
    for root in '' "$DEPS"; do
        dir=$(ls -d "$root"/usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
        [ ! -x "$dir/initdb" ] || { echo "$dir"; return; }
    done
}
pq_flags() { echo "-I$(in_deps /usr/include/postgresql) -lpq"; }

has_redis() { runs redis-server redis-cli && links hiredis/hiredis.h -lhiredis; }
has_postgres() { runs "$(pg_bin)/initdb" "$(pg_bin)/postgres" && links libpq-fe.h $(pq_flags); }
has_curl() { links curl/curl.h -lcurl && links openssl/ssl.h -lssl -lcrypto && openssl version; }
has_tls() { links openssl/ssl.h -lssl -lcrypto && openssl version; }
has_wrk() { command -v wrk; }
has_sqlite() { links sqlite3.h -lsqlite3; }
has_glib() { runs pkg-config && links glib.h $(pkg-config --cflags --libs glib-2.0); }
has_gc() { links gc.h -lgc; }
has_tcmalloc() { links stdlib.h -l:libtcmalloc_minimal.so.4; }
has_mandoc() { echo | mandoc -T lint -W fatal; }
has_pkgconfig() { runs pkg-config; }
has_cmake() { runs cmake; }
has_http() { runs curl; }
has_python() { runs python3; }
has_sqlite3() { runs sqlite3; }
has_format() { runs clang-format-14 || clang-format --version | grep -q 'version 14\.'; }
has_browser() { runs "$(chromium_program)" && [ -d "$(in_deps $DEJAVU)" ]; }
chromium_program() { in_deps /usr/lib/chromium/chromium; }
DEJAVU=/usr/share/fonts/truetype/dejavu
has_cxx() { echo '#include <semaphore>' | ${CXX:-c++} -std=c++20 -x c++ -E -; }
has_openmp() { links omp.h -fopenmp; }
has_libomp() { CC=clang links omp.h -fopenmp; }
has_rocksdb() { links rocksdb/c.h -lrocksdb; }
has_java() { runs java javac; }
has_node() { runs node; }
has_zmq() { links zmq.h -lzmq; }
has_cares() { links ares.h -lcares; }
has_kafka() { links librdkafka/rdkafka.h -lrdkafka; }
has_mariadb() { runs mariadbd mariadb && command -v mariadb-install-db &&
    links mysql.h $(maria_flags); }
maria_flags() { echo "-I$(in_deps /usr/include/mariadb) -lmariadb"; }
has_ldap() { [ -x "$(in_deps /usr/sbin/slapd)" ] && links ldap.h -lldap -llber; }
has_ssh2() { [ -x "$(in_deps /usr/sbin/sshd)" ] && links libssh2.h -lssh2; }
has_glibc() { [ -e "$(glibc_source)" ]; }
glibc_source() { ls "$(in_deps /usr/src/glibc)"/glibc-*.tar.xz; }
has_compress() { runs xz zstd pigz && command -v pbzip2 && openssl version; }
has_microhttpd() { has_wrk && links microhttpd.h -lmicrohttpd; }
has_memcached() { runs memcached; }
has_apache() { apache2 -v && [ -e "$(in_deps /usr/lib/apache2/modules)/mod_mpm_worker.so" ]; }
has_names() { unbound -V && named -V; }
has_stressng() { runs stress-ng; }
has_ruby() { ruby -rsocket -e 1; }
has_ffmpeg() { ffmpeg -version; }
has_grpc() { runs protoc && command -v grpc_cpp_plugin && pkg-config --exists grpc++ protobuf &&
    echo '#include <grpcpp/grpcpp.h>' | ${CXX:-c++} -std=c++17 -x c++ -E -; }
has() { "has_$1" >/dev/null 2>&1 </dev/null; }

# ---- what does not ------------------------------------------------------------------------------

why_not() { # why tests/deps has not brought it
    if [ -n "${NODEPS:-}" ]; then echo 'NODEPS=1'
    elif ! command -v apt-get >/dev/null; then echo 'there is no apt-get to bring them'
    elif ! command -v dpkg-deb >/dev/null; then echo 'there is no dpkg-deb to unpack them'
    elif [ -s "$DEPS/why" ]; then head -n 1 "$DEPS/why"
    else echo 'tests/deps has not brought them'
    fi
}
lack() {
    local n missing=
    for n; do has "$n" || missing="$missing $(packages_of "$n")"; done
    [ -n "$missing" ] || return
    echo "needs$missing ($(why_not))"
}
