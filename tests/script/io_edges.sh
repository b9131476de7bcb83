#!/bin/bash
# Not a single edge is lost: the tests of descriptors with GORT_DEBUG=relook=0, where the poller
# never asks the kernel a second time, which would put a lost wake-up right after half a second and
# hide it. (Those that close numbers behind its back need that: io_kinds, io_reuse.)
set -u
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
failed=0
for t in io_accept io_backlog io_close io_copy io_deadline io_pipe io_poll io_reader \
    io_shutdown io_socket io_udp io_unix; do
    for procs in 1 2; do
        GORT_DEBUG=relook=0 GORT_MAXPROCS=$procs timeout -s QUIT -k 5 120 \
            "$OUT/tests/api/${t}_test" </dev/null >"$WORK/out" 2>&1
        st=$?
        [ $st = 0 ] || [ $st = 77 ] ||
            { echo "$t ($procs): status $st"; tail -40 "$WORK/out"; failed=1; }
    done
done
exit $failed
