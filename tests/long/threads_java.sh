# Java with a thousand threads, an HTTP server, garbage collections (tests/programs/Crowd.java).
set -u
. tests/lib/threads.sh
begin java
javac -d "$WORK" tests/programs/Crowd.java || fail 'it does not compile'
alike java java -Xmx256m -cp "$WORK" Crowd
cat "$WORK/java.2" "$WORK/java.2.err"
