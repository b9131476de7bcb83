# tests/servers/run.sh with each goroutine a thread to libc (gort_attr.thread = 1).
set -u
[ -z "$SAN" ] || { echo 'skipped: a sanitizer has hooks of its own'; exit 77; }
tests/deps redis postgres curl sqlite glib cxx openmp zmq cares kafka mariadb ldap ssh2 libomp \
    rocksdb grpc
export OWN_THREAD=1 QUICK=1
T=crowd tests/servers/run.sh || exit
T='' exec tests/servers/run.sh
