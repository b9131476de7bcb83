# examples/httpd: files, what must be refused, the way through the proxy, the limits, the shutdown.
# With curl and wrk where they are, and requests written by hand.
set -eu
. tests/lib/deps.sh
use_deps
bad=0
pids=
trap 'for p in $pids; do kill "$p" 2>/dev/null || :; done' EXIT
fail() { echo "$*"; bad=1; }

# A server on a free port: $addr is where it listens, $pid which it is.
start() { # name option...
    local log=$WORK/err.$1
    shift
    : >"$log"
    "$OUT/examples/httpd/httpd" -l 127.0.0.1:0 -r "$WORK/root" "$@" 2>"$log" &
    pid=$!
    pids="$pids $pid"
    addr=
    while [ -z "$addr" ]; do
        addr=$(sed -n 's|^listening on http://\(.*\)/$|\1|p' "$log")
        kill -0 $pid 2>/dev/null || { cat "$log"; exit 1; }
        [ -n "$addr" ] || sleep 0.1
    done
}
# Words on its command line that are no options, or no numbers, are refused, and why.
while IFS='|' read -r words options; do
    st=0
    # shellcheck disable=SC2086
    timeout 60 "$OUT/examples/httpd/httpd" $options >"$WORK/said" 2>&1 || st=$?
    [ $st = 2 ] && grep -qx "httpd: $words" "$WORK/said" && grep -q '^usage: httpd ' "$WORK/said" ||
        { cat "$WORK/said"; fail "httpd $options: status $st, expected 2 and: $words"; }
done <<'END'
-c many: not a number from 1 to .*|-c many
-c 0: not a number from 1 to .*|-c 0
-i 1x: not a number from 0 to .*|-i 1x
-b -1: not a number from 0 to .*|-b -1
-g nan: not a number from 0 to .*|-g nan
-w 1e99: not a number from 0 to .*|-w 1e99
-p /a: no "=" in it|-p /a
many: no option|many
END

# What the server answers to these bytes, until it closes.
raw() { # address printf-format
    exec 9<>"/dev/tcp/${1%:*}/${1##*:}" || return
    # shellcheck disable=SC2059
    (trap '' PIPE && printf "$2" >&9) 2>/dev/null || : # it may close before it has read all
    timeout 100 cat <&9 || :
    exec 9>&- 9<&-
}
# The status of each answer to these bytes.
statuses() { raw "$1" "$2" | tr -d '\r' | sed -n 's|.*HTTP/1\.1 \([0-9]*\) .*|\1|p' | tr '\n' ' '; }
expect() { # address statuses what printf-format
    local got
    got=$(statuses "$1" "$4")
    [ "$got" = "$2 " ] || fail "$3: $got, not $2"
}

mkdir -p "$WORK/root/sub" "$WORK/root/index"
echo 'hello, world' >"$WORK/root/a.txt"
echo 'the index' >"$WORK/root/index/index.html"
: >"$WORK/root/empty"
echo hidden >"$WORK/root/.hidden"
echo name >"$WORK/root/a <b>&c.txt"
echo secret >"$WORK/secret"
head -c 3000000 /dev/urandom >"$WORK/root/big"
truncate -s 100000000 "$WORK/root/huge"
ln -s "$WORK/secret" "$WORK/root/link"
ln -s "$WORK" "$WORK/root/sub/up"
mkfifo "$WORK/root/fifo"

one='Host: x\r\nConnection: close\r\n\r\n'
v='HTTP/1.1\r\nHost: x\r\n' # the request goes on
chunks='Transfer-Encoding: chunked\r\n'
files() { # address
    local a=$1 date
    expect "$a" 200 'a file' "GET /a.txt HTTP/1.1\r\n$one"
    expect "$a" 200 'HEAD' "HEAD /a.txt HTTP/1.1\r\n$one"
    raw "$a" "HEAD /a.txt HTTP/1.1\r\n$one" | tail -c 4 | cmp - <(printf '\r\n\r\n') ||
        fail 'HEAD has a body'
    expect "$a" '200 200 404 200' 'four at once' \
        "GET /a.txt $v\r\nHEAD /big $v\r\nGET /none $v\r\nGET /empty HTTP/1.1\r\n$one"
    expect "$a" '200 200' 'a body that nobody wants' \
        "GET /a.txt ${v}Content-Length: 5\r\n\r\n12345GET /a.txt HTTP/1.1\r\n$one"
    expect "$a" '200 200' 'chunks that nobody wants' \
        "GET /a.txt $v$chunks\r\n5;x=y\r\n12345\r\n0\r\nA: b\r\n\r\nGET /a.txt HTTP/1.1\r\n$one"
    expect "$a" 200 'HTTP/1.0 ends' 'GET /a.txt HTTP/1.0\r\n\r\nGET /a.txt HTTP/1.0\r\n\r\n'
    expect "$a" '200 200' 'HTTP/1.0 goes on' \
        'GET /a.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /a.txt HTTP/1.0\r\n\r\n'
    expect "$a" 200 'an absolute target' "GET http://x/a.txt HTTP/1.1\r\n$one"
    expect "$a" 405 'a method' "POST /a.txt HTTP/1.1\r\nContent-Length: 0\r\n$one"
    expect "$a" 200 'an index' "GET /index/ HTTP/1.1\r\n$one"
    expect "$a" 301 'a directory without its slash' "GET /sub HTTP/1.1\r\n$one"
    raw "$a" "GET //sub HTTP/1.1\r\n$one" | grep -q '^Location: /sub/' || fail 'the redirect'
    raw "$a" "GET / HTTP/1.1\r\n$one" >"$WORK/list"
    grep -qF '<a href="./a%20%3Cb%3E%26c.txt">a &#60;b&#62;&#38;c.txt</a>' "$WORK/list" ||
        fail 'the list'
    if grep -q 'hidden\|link' "$WORK/list"; then fail 'the list shows too much'; fi

    # No way out, and nothing but files.
    for path in /.. /../secret /sub/../../secret /%%2e%%2e/secret /..%%2fsecret \
        /sub/%%2E./%%2e./secret /%%zz /%%2 /a.txt%%00; do
        expect "$a" 400 "$path" "GET $path HTTP/1.1\r\n$one"
    done
    for path in /link /sub/up/ /sub/up/secret /fifo /.hidden /a.txt/ /%%252e%%252e/secret; do
        expect "$a" 404 "$path" "GET $path HTTP/1.1\r\n$one"
    done
    expect "$a" 200 'dots that stay below' "GET /sub/./..//a.txt HTTP/1.1\r\n$one"

    # Ranges and conditions.
    date=$(raw "$a" "HEAD /big HTTP/1.1\r\n$one" | tr -d '\r' | sed -n 's/^Last-Modified: //p')
    expect "$a" 304 'not modified' "GET /big HTTP/1.1\r\nIf-Modified-Since: $date\r\n$one"
    expect "$a" 200 'modified' \
        "GET /a.txt HTTP/1.1\r\nIf-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n$one"
    expect "$a" 200 'no date' "GET /a.txt HTTP/1.1\r\nIf-Modified-Since: yesterday\r\n$one"
    for range in 7-11 7- -6 -900 0-0 12-900; do
        expect "$a" 206 "$range" "GET /a.txt HTTP/1.1\r\nRange: bytes=$range\r\n$one"
    done
    for range in 13- 99-100 -0; do
        expect "$a" 416 "$range" "GET /a.txt HTTP/1.1\r\nRange: bytes=$range\r\n$one"
    done
    for range in 5-2 1-2,4-5 x - --5 1-2-3 ''; do
        expect "$a" 200 "range '$range'" "GET /a.txt HTTP/1.1\r\nRange: bytes=$range\r\n$one"
    done
    expect "$a" 206 'If-Range' "GET /big HTTP/1.1\r\nRange: bytes=0-9\r\nIf-Range: $date\r\n$one"
    raw "$a" "GET /big HTTP/1.1\r\nRange: bytes=1000000-1999999\r\n$one" | tail -c 1000000 |
        cmp - <(tail -c +1000001 "$WORK/root/big" | head -c 1000000) || fail 'a large range'
    raw "$a" "GET /a.txt HTTP/1.1\r\nRange: bytes=-6\r\n$one" | grep -qx 'world' ||
        fail 'the end of a file'
}

# Malformed, or what two servers could understand in two ways; the connection ends after the answer,
# so nothing behind it is taken for a request.
next="GET /a.txt HTTP/1.1\r\n$one"
refusals() { # address path
    local a=$1 p=$2 get="GET $2 HTTP/1.1\r\nHost: x\r\n" line
    while IFS='|' read -r status what text; do
        expect "$a" "$status" "$what ($p)" "$text$next"
    done <<END
400|a length and chunks|${get}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n
400|two lengths|${get}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc
400|two equal lengths|${get}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc
400|a list of lengths|${get}Content-Length: 3, 3\r\n\r\nabc
400|a negative length|${get}Content-Length: -1\r\n\r\n
400|a length with a sign|${get}Content-Length: +3\r\n\r\nabc
400|a hexadecimal length|${get}Content-Length: 0x3\r\n\r\nabc
400|a length of 20 digits|${get}Content-Length: 18446744073709551617\r\n\r\na
400|no length in it|${get}Content-Length: \r\n\r\n
413|a body too long|${get}Content-Length: 1000000\r\n\r\n
501|an unknown coding|${get}Transfer-Encoding: gzip, chunked\r\n\r\n
501|a coding in disguise|${get}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n
400|two codings|${get}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n
400|chunks in HTTP/1.0|GET $p HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n
400|a space before the colon|${get}Content-Length : 3\r\n\r\nabc
400|a folded line|${get}A: b\r\n c\r\n\r\n
400|no colon|${get}nonsense\r\n\r\n
400|no name|${get}: b\r\n\r\n
400|a control character|${get}A: b\001c\r\n\r\n
400|a bare carriage return|${get}A: b\rContent-Length: 3\r\n\r\n
400|a NUL|${get}A: b\000c\r\n\r\n
400|no host|GET $p HTTP/1.1\r\n\r\n
400|two hosts|${get}Host: y\r\n\r\n
400|no version|GET $p\r\n\r\n
400|two spaces|GET  $p HTTP/1.1\r\n\r\n
400|a space in the target|GET $p b HTTP/1.1\r\n\r\n
400|no slash|GET a HTTP/1.1\r\nHost: x\r\n\r\n
400|no request|\026\003\001\001\r\n\r\n
505|another version|GET $p HTTP/2.0\r\nHost: x\r\n\r\n
END
    line=$(head -c 9000 /dev/zero | tr '\0' a)
    expect "$a" 414 "a long target ($p)" "GET $p$line HTTP/1.1\r\nHost: x\r\n\r\n"
    expect "$a" 431 "a long field ($p)" "${get}A: $line\r\n\r\n"
    line=$(for line in $(seq 101); do printf 'A%s: b\\r\\n' "$line"; done)
    expect "$a" 431 "many fields ($p)" "$get$line\r\n"
}

head -c 300000 /dev/urandom >"$WORK/body"
start back -b 500000 -h 2 -i 4 -g 5
back=$addr
files "$back"
refusals "$back" /a.txt
start front -p "/=$back" -b 500000 -a "$WORK/log" -c 50 -h 2 -i 4 -g 5
front=$addr front_pid=$pid
expect "$front" '200 200 404' 'through the proxy' \
    "GET /a.txt $v\r\nHEAD /big $v\r\nGET /none HTTP/1.1\r\n$one"
expect "$front" 304 'a condition through it' \
    "GET /a.txt HTTP/1.1\r\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n$one"
raw "$front" "GET /big HTTP/1.0\r\n\r\n" | tail -c 3000000 | cmp - "$WORK/root/big" ||
    fail 'a large file through it'
refusals "$front" /a.txt
start dead -p "/=127.0.0.1:1"
expect "$addr" 502 'nobody behind it' "GET /a HTTP/1.1\r\n$one"
grep -qx 'httpd: 127.0.0.1:1: Connection refused' "$WORK/err.dead" || fail 'it does not say why'

# A server behind it that says what it has got, in chunks or up to the end.
if has python; then
    cat >"$WORK/upstream.py" <<'END'
import socket, sys, threading
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
def serve(c):
    f = c.makefile("rwb")
    line = f.readline().decode()
    fields = {}
    while (l := f.readline().strip().decode()):
        name, value = l.split(":", 1)
        fields[name.lower()] = value.strip()
    body = b""
    if "early" in line:
        f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly"); f.flush(); c.close(); return
    if "silent" in line: c.recv(1); return
    if fields.get("transfer-encoding") == "chunked":
        while (n := int(f.readline(), 16)): body += f.read(n); f.readline()
        f.readline()
    else: body = f.read(int(fields.get("content-length", 0)))
    if "chunked" in line:
        f.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nKeep-Alive: x\r\nX: y\r\n\r\n")
        for i in range(0, len(body), 7001):
            piece = body[i:i+7001]
            f.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        f.write(b"0\r\nT: u\r\n\r\n")
    elif "twice" in line:
        f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc")
    elif "short" in line: f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
    elif "fields" in line:
        f.write(b"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
        f.write(repr(sorted(fields)).encode())
    else: f.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)
    f.flush(); c.close()
while True:
    c, _ = s.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
END
    python3 "$WORK/upstream.py" >"$WORK/upstream" 2>/dev/null &
    pids="$pids $!"
    until [ -s "$WORK/upstream" ]; do sleep 0.1; done
    start echo -p "/=127.0.0.1:$(cat "$WORK/upstream")" -b 500000 -h 2 -i 3
    if has http; then
        for how in '' 'Transfer-Encoding: chunked' 'Expect: 100-continue'; do
            for path in plain chunked; do
                curl -sS --max-time 60 -H "$how" --data-binary "@$WORK/body" "http://$addr/$path" \
                    >"$WORK/got" || fail "curl ($how, $path)"
                cmp "$WORK/body" "$WORK/got" || fail "the body is another ($how, $path)"
            done
        done
    fi
    raw "$addr" "GET /fields ${v}Connection: close, my\r\nMy: x\r\nTE: x\r\nOther: y\r\n\r\n" |
        grep -q "\['connection', 'host', 'other', 'x-forwarded-for'\]" ||
        fail 'the fields for one hop'
    expect "$addr" 502 'an answer of two lengths' "GET /twice HTTP/1.1\r\n$one"
    expect "$addr" 504 'a server that is silent' "GET /silent HTTP/1.1\r\n$one"
    [ "$(raw "$addr" "GET /short $v\r\n" | tail -c 3)" = abc ] || fail 'a short answer'
    raw "$addr" "POST /early ${v}Content-Length: 400000\r\n\r\nabc" | grep -q early ||
        fail 'an early answer'
    expect "$addr" 400 'a wrong chunk' "POST / $v$chunks\r\nzz\r\n"
    much=$(for i in $(seq 60); do printf '2710\\r\\n%010000d\\r\\n' 0; done)
    expect "$addr" 413 'too many chunks' "POST / $v$chunks\r\n$much"
    expect "$addr" 408 'half a body' 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc'
    # HTTP/1.0 knows no chunks.
    raw "$addr" 'POST /chunked HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc' | tr -d '\r' >"$WORK/got"
    [ "$(tail -n 1 "$WORK/got")" = abc ] || fail 'chunks for HTTP/1.0'
else
    echo 'no python3: without a server behind the proxy that answers in chunks'
fi

# Slow clients: a head that does not end, a body that does not come. The time is the server's.
expect "$back" 408 'half a head' 'GET /a.txt HTTP/1.1\r\nHost: x\r\n'
[ -z "$(raw "$back" 'GET /a')" ] || fail 'half a line is answered'

# The 51st connection is refused, and told so.
for i in $(seq 50); do
    eval "exec {c$i}<>/dev/tcp/${front%:*}/${front##*:}"
    eval "printf 'GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n' >&\$c$i; read -r -t 100 line <&\$c$i"
done
expect "$front" 503 'one too many' ''
for i in $(seq 50); do eval "exec {c$i}>&-"; done
until [ "$(statuses "$front" "GET /a.txt HTTP/1.1\r\n$one")" = '200 ' ]; do sleep 0.1; done
raw "$front" "GET /-/metrics HTTP/1.1\r\n$one" >/dev/null # the proxy's prefix is "/"
raw "$back" "GET /-/metrics HTTP/1.1\r\n$one" | tr -d '\r' >"$WORK/figures"
[ "$(sed -n 's/httpd_requests_total{class="2xx"} //p' "$WORK/figures")" -gt 20 ] ||
    { cat "$WORK/figures"; bad=1; }

if has wrk; then
    wrk -t1 -c20 -d2s "http://$back/a.txt" >"$WORK/wrk"
    if grep -q 'Non-2xx\|Socket errors' "$WORK/wrk"; then cat "$WORK/wrk"; bad=1; fi
    wrk -t1 -c20 -d2s "http://$front/a.txt" >"$WORK/wrk"
    if grep -q 'Non-2xx\|Socket errors' "$WORK/wrk"; then cat "$WORK/wrk"; bad=1; fi
else
    echo "without wrk: $(lack wrk)"
fi

# The shutdown: what runs comes to its end, what is idle ends at once, nobody new is let in.
exec 7<>"/dev/tcp/${front%:*}/${front##*:}" 8<>"/dev/tcp/${front%:*}/${front##*:}"
printf 'GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n' >&8
read -r -t 100 line <&8 # this one is idle afterwards
printf 'GET /huge HTTP/1.1\r\nHost: x\r\n\r\n' >&7
read -r -t 100 line <&7 # this one runs: more than any socket holds
kill -TERM "$front_pid"
timeout 100 cat <&8 >/dev/null # its end
if (exec 9<>"/dev/tcp/${front%:*}/${front##*:}") 2>/dev/null; then fail 'it still accepts'; fi
[ "$(timeout 100 cat <&7 | tail -c 100000000 | wc -c)" = 100000000 ] ||
    fail 'the last answer is not whole'
exec 7>&- 8>&-
st=0
wait "$front_pid" || st=$?
[ $st = 0 ] || fail "the shutdown: status $st"
# A line for each, and none was forged.
grep -q '"GET /huge" 200 100000000 ' "$WORK/log" || fail 'the log'
if grep -v '^127\.0\.0\.1:[0-9]* 20[0-9TZ:-]* "[^"]*" [0-9]* [0-9]* [0-9]* us$' "$WORK/log"; then
    fail 'lines of the log'
fi
# One that does not come to its end is cut off when the grace is over.
start stuck -g 1 -i 60
exec 7<>"/dev/tcp/${addr%:*}/${addr##*:}"
printf 'GET /huge HTTP/1.1\r\nHost: x\r\n\r\n' >&7
read -r -t 100 line <&7
kill -TERM "$pid"
st=0
wait "$pid" || st=$?
[ $st = 3 ] || fail "cut off: status $st"
exit $bad
