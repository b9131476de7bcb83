# Name servers: unbound and named with four threads each, by UDP and TCP, every answer checked; the
# configuration again by SIGHUP; the end by SIGTERM. unbound once in the background.
set -u
. tests/lib/threads.sh
begin names python
for i in $(seq 0 199); do echo "h$i IN A 10.0.0.$i"; done >"$WORK/hosts"
{
    echo '$ORIGIN test.example.'
    echo '$TTL 60'
    echo '@ IN SOA ns a 1 60 60 60 60'
    echo '@ IN NS ns'
    echo 'ns IN A 127.0.0.1'
    cat "$WORK/hosts"
} >"$WORK/zone"

unbound_conf() { # yes, no: into the background
    cat <<END
server:
 num-threads: 4
 so-reuseport: yes
 interface: 127.0.0.1@$port
 do-daemonize: $1
 username: ""
 chroot: ""
 directory: "$WORK"
 pidfile: "$WORK/pid"
 use-syslog: no
 logfile: "$WORK/unbound.log"
 local-zone: "test.example." static
remote-control:
 control-enable: no
END
    sed "s/^\(h[0-9]*\) IN A \(.*\)/server: local-data: \"\1.test.example. A \2\"/" "$WORK/hosts"
}
named_conf() {
    cat <<END
options {
  directory "$WORK"; pid-file "$WORK/pid"; session-keyfile "$WORK/session";
  listen-on port $port { 127.0.0.1; }; listen-on-v6 { none; };
  recursion no; dnssec-validation no; minimal-responses yes;
};
controls { };
zone "test.example" { type primary; file "$WORK/zone"; };
END
}
load() { # name, way
    timeout 100 python3 tests/programs/dns_load.py "$port" 30 >"$WORK/out" 2>&1 ||
        { cat "$WORK/out" "$WORK/log"; fail "$1, $2: the load"; }
}
serve() { # name, way, command...
    local name=$1 way=$2
    shift 2
    start $way "$@" >"$WORK/log" 2>&1
    await "(exec 3<>/dev/tcp/127.0.0.1/$port)" || { cat "$WORK/log"; fail "$name, $way: no start"; }
    load $name $way
    kill -HUP $server
    await "(exec 3<>/dev/tcp/127.0.0.1/$port)"
    load $name $way
    echo "$name, $way: $(cat "$WORK/out"), $(threads_of $server) kernel threads"
    kill -TERM $server
    ended || { cat "$WORK/log"; fail "$name, $way: SIGTERM ended it with $status"; }
}
in_background() { # way
    under $1 unbound -c "$WORK/conf" >"$WORK/log" 2>&1 || { cat "$WORK/log"; fail "$1: no daemon"; }
    server=$(cat "$WORK/pid")
    await "(exec 3<>/dev/tcp/127.0.0.1/$port)" || fail "$1: the daemon does not begin"
    load daemon $1
    kill -TERM $server
    await "! kill -0 $server" || fail "$1: the daemon does not end"
    server=
}
for way in $ways; do
    port=$(spare_port)
    unbound_conf no >"$WORK/conf"
    serve unbound $way unbound -d -c "$WORK/conf"
    port=$(spare_port)
    named_conf >"$WORK/conf"
    serve named $way named -g -n 4 -c "$WORK/conf"
    port=$(spare_port)
    unbound_conf yes >"$WORK/conf"
    in_background $way
done
