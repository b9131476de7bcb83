# tests/servers/run.sh: the hook with libcurl and OpenSSL.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
QUICK=1 T=curl exec tests/servers/run.sh
