# tests/servers/run.sh: the hook with GLib, 500 goroutines.
set -eu
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
[ -z "${TEST_RUNNER:-}" ] || { echo 'skipped: not under emulation'; exit 77; }
QUICK=1 T=crowd_glib exec tests/servers/run.sh
