# Ruby's threads: locks, queues, timeouts, exceptions from outside, sockets, children, signals.
require 'timeout'
require 'socket'
require 'open3'

lock = Mutex.new
count = 0
adds = -> { 200.times { lock.synchronize { count += 1 }; Thread.pass } }
Array.new(50) { Thread.new(&adds) }.each(&:join)
puts count

queue = SizedQueue.new(4)
adder = Thread.new { sum = 0; while (v = queue.pop) != :end do sum += v end; sum }
1000.times { |i| queue << i }
queue << :end
puts adder.value

cond = ConditionVariable.new
ready = 0
go = false
waiters = Array.new(30) do |i|
  Thread.new { lock.synchronize { ready += 1; cond.wait(lock) until go; i } }
end
sleep 0.01 until lock.synchronize { ready } == 30
lock.synchronize { go = true; cond.broadcast }
puts waiters.sum(&:value)

[proc { sleep }, proc { loop {} }, proc { IO.pipe[0].read }].each do |wait|
  Timeout.timeout(0.05, &wait)
rescue Timeout::Error
  puts 'timeout'
end

thread = Thread.new { begin; sleep; ensure; puts 'ensured'; end }
sleep 0.01 until thread.status == 'sleep'
thread.kill
thread.join
thread = Thread.new { begin; sleep; rescue => e; e.message; end }
sleep 0.01 until thread.status == 'sleep'
thread.raise('from outside')
puts thread.value

server = TCPServer.new('127.0.0.1', 0)
Thread.new do
  loop do
    s = server.accept
    Thread.new { while (line = s.gets) do s.puts line.upcase end; s.close }
  end
end
puts((1..40).map do |i|
  Thread.new do
    s = TCPSocket.new('127.0.0.1', server.addr[1])
    s.puts "hi #{i}"
    s.gets.tap { s.close }
  end
end.map(&:value).sort.join)

Process.wait(fork { exit Thread.new { 42 }.value })
puts $?.exitstatus
children = (1..8).map { |i| Thread.new { `echo #{i}; exit #{i}` + $?.exitstatus.to_s } }
puts children.map(&:value).inspect
# main polls and yields here: the end of the child has to come to it
out, err, = Open3.capture3('cat; echo err >&2', stdin_data: 'x' * 200_000)
puts [out.size, err.size].inspect

r, w = IO.pipe
trap('USR1') { w.write 'u' }
Process.kill('USR1', $$)
puts r.read(1)
puts Array.new(4) { Thread.new { 200.times { Array.new(1000, &:to_s) }; GC.start; 1 } }.sum(&:value)
def deep(n) = 1 + deep(n + 1)
puts Thread.new { begin; deep(0); rescue SystemStackError; 'too deep'; end }.value
at_exit { puts 'bye' }
