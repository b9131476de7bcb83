# tests/servers/run.sh: the hook with libcurl with OpenSSL, 500 goroutines.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
QUICK=1 T=crowd_curl exec tests/servers/run.sh
