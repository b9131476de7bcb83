# Apache's httpd, mpm_worker: processes of 25 threads each, made by one that has none. Every answer
# checked, also through its own proxy; a graceful restart by SIGUSR1, one by SIGHUP; SIGTERM.
set -u
. tests/lib/threads.sh
begin apache python
modules=$(in_deps /usr/lib/apache2/modules)
types=$(in_deps /etc/mime.types)
mkdir "$WORK/www"
# root's server reads as another user
dir=$WORK
while case $dir in */gort-test.*) : ;; *) false ;; esac do chmod o+x "$dir"; dir=${dir%/*}; done
seq 2000 >"$WORK/www/page"

conf() {
    cat <<END
ServerRoot $WORK
ServerName localhost
Listen 127.0.0.1:$port
PidFile $WORK/pid
ErrorLog $WORK/error
DefaultRuntimeDir $WORK
LoadModule mpm_worker_module $modules/mod_mpm_worker.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule mime_module $modules/mod_mime.so
LoadModule proxy_module $modules/mod_proxy.so
LoadModule proxy_http_module $modules/mod_proxy_http.so
TypesConfig $types
DocumentRoot $WORK/www
ProxyPass /proxy http://127.0.0.1:$port/page
StartServers 2
ServerLimit 4
ThreadsPerChild 25
MaxRequestWorkers 100
MinSpareThreads 25
MaxSpareThreads 100
END
    [ "$(id -u)" != 0 ] || printf 'User #%s\nGroup #%s\n' "$(id -u nobody)" "$(id -g nobody)"
}
load() { # way, path, how many
    timeout 100 python3 tests/programs/http_load.py "$port" "$2" "$WORK/www/page" "$3" \
        >"$WORK/out" 2>&1 || { cat "$WORK/out"; tail -5 "$WORK/error"; fail "$1: $2"; }
}
children() { pgrep -P $server | sort | tr '\n' ' '; }
most() {
    local p n most=0
    for p in $(children); do n=$(threads_of $p); [ "${n:-0}" -le $most ] || most=$n; done
    echo $most
}
serve() { # way
    local before
    port=$(spare_port)
    conf >"$WORK/conf"
    start $1 apache2 -DFOREGROUND -f "$WORK/conf"
    await "(exec 3<>/dev/tcp/127.0.0.1/$port)" || { cat "$WORK/error"; fail "$1: no beginning"; }
    load $1 /page 40
    load $1 /proxy 10
    for signal in USR1 HUP; do
        before=$(children)
        kill -$signal $server
        await "[ -n \"\$(children)\" ] && [ \"\$(children)\" != '$before' ]" ||
            fail "$1: SIG$signal changes nothing"
        await "(exec 3<>/dev/tcp/127.0.0.1/$port)"
        load $1 /page 40
    done
    echo "$1: $(cat "$WORK/out"), $(most) kernel threads in a process"
    kill -TERM $server
    ended || { tail -5 "$WORK/error"; fail "$1: SIGTERM ended it with $status"; }
}
for way in $ways; do serve $way; done
