# Ruby's threads, with timeouts, children and signals (tests/programs/threads.rb).
set -u
. tests/lib/threads.sh
begin ruby
for round in $(seq 5); do alike ruby ruby tests/programs/threads.rb; done
cat "$WORK/ruby.2" "$WORK/ruby.2.err"
