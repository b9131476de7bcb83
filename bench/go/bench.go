// The Go twin of bench/bench.c. It defines the workloads: their names, their default counts and
// what the clock covers.
//
//	gobench NAME [N]                 prints lines `name value unit`; N replaces the default count
//	gobench all                      every workload in turn, but for preempt
//	gobench echo ADDR | http ADDR    servers, for bench/load; they run until killed
//	gobench tls ADDR CERT KEY        the same over TLS, for bench/tls
//	gobench version                  the version of Go
//	WORKERS=1|2                      the number of Ps
package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

func report(name string, v float64, unit string) { fmt.Printf("%s %.6g %s\n", name, v, unit) }

func nsop(name string, t0 time.Time, ops int) {
	report(name, float64(time.Since(t0).Nanoseconds())/float64(ops), "ns/op")
}
func ms(name string, t0 time.Time) {
	report(name, float64(time.Since(t0).Nanoseconds())/1e6, "ms")
}

var argN int // replaces the default count

func count(def int) int {
	if argN > 0 {
		return argN
	}
	return def
}

// g goroutines that yield n times each.
func yieldN(name string, g, n int) {
	var wg sync.WaitGroup
	wg.Add(g)
	t0 := time.Now()
	for i := 0; i < g; i++ {
		go func() {
			for j := 0; j < n; j++ {
				runtime.Gosched()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	nsop(name, t0, g*n)
}

func bYield()   { yieldN("yield", 2, count(3000000)) }
func bYield1k() { yieldN("yield1k", 1000, count(5000)) }

// Goroutines from start to end, in batches that a WaitGroup joins.
func spawnN(name string, total, batch int) {
	t0 := time.Now()
	for done := 0; done < total; done += batch {
		var wg sync.WaitGroup
		wg.Add(batch)
		for i := 0; i < batch; i++ {
			go func() { wg.Done() }()
		}
		wg.Wait()
	}
	nsop(name, t0, total)
}

func bSpawn()      { spawnN("spawn", count(1000000), 1000) }
func bSpawnBurst() { n := count(1000000); spawnN("spawn_burst", n, n) }

// The round trip over two unbuffered channels.
func bPingpong() {
	n := count(1000000)
	a, b := make(chan int), make(chan int)
	go func() {
		for v := range a {
			b <- v
		}
	}()
	t0 := time.Now()
	for i := 0; i < n; i++ {
		a <- i
		<-b
	}
	nsop("pingpong", t0, n)
	close(a)
}

// A buffered channel, one producer and one consumer.
func bChanBuf() {
	n := count(5000000)
	c := make(chan int, 128)
	t0 := time.Now()
	go func() {
		for i := 0; i < n; i++ {
			c <- i
		}
		close(c)
	}()
	s := 0
	for v := range c {
		s += v
	}
	nsop("chan_buf", t0, n)
	sink = s
}

var sink int

// A buffered channel, four producers and four consumers.
func bChanMpmc() {
	n := count(4000000)
	c := make(chan int, 128)
	var pw, cw sync.WaitGroup
	pw.Add(4)
	cw.Add(4)
	t0 := time.Now()
	for p := 0; p < 4; p++ {
		go func() {
			for i := 0; i < n/4; i++ {
				c <- i
			}
			pw.Done()
		}()
	}
	for p := 0; p < 4; p++ {
		go func() {
			s := 0
			for v := range c {
				s += v
			}
			_ = s
			cw.Done()
		}()
	}
	pw.Wait()
	close(c)
	cw.Wait()
	nsop("chan_mpmc", t0, n)
}

// A select of two unbuffered channels with a producer each.
func bSelect() {
	n := count(2000000)
	a, b := make(chan int), make(chan int)
	prod := func(c chan int) {
		for i := 0; i < n/2; i++ {
			c <- i
		}
	}
	t0 := time.Now()
	go prod(a)
	go prod(b)
	s := 0
	for i := 0; i < n; i++ {
		select {
		case v := <-a:
			s += v
		case v := <-b:
			s += v
		}
	}
	nsop("select", t0, n)
	sink = s
}

// g goroutines lock n times in all; with yield the holder hands its P on inside.
func mutexN(name string, g, n int, yield bool) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	cnt := 0
	wg.Add(g)
	t0 := time.Now()
	for i := 0; i < g; i++ {
		go func() {
			for j := 0; j < n/g; j++ {
				mu.Lock()
				cnt++
				if yield {
					runtime.Gosched()
				}
				mu.Unlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	nsop(name, t0, n)
	sink = cnt
}

func bMutex()            { mutexN("mutex", 8, count(8000000), false) }
func bMutexUncontended() { mutexN("mutex_uncontended", 1, count(30000000), false) }
func bMutexHandoff()     { mutexN("mutex_handoff", 8, count(800000), true) }

// A tree of goroutines, ten children each, whose leaves are added up over channels.
func skynet(c chan int, num, size, div int) {
	if size == 1 {
		c <- num
		return
	}
	rc := make(chan int)
	sum := 0
	for i := 0; i < div; i++ {
		go skynet(rc, num+i*(size/div), size/div, div)
	}
	for i := 0; i < div; i++ {
		sum += <-rc
	}
	c <- sum
}

func bSkynet() {
	n := count(1000000)
	c := make(chan int)
	t0 := time.Now()
	go skynet(c, 0, n, 10)
	r := <-c
	ms("skynet", t0)
	if n == 1000000 && r != 499999500000 {
		panic("skynet: wrong sum")
	}
}

// The prime sieve: a goroutine per prime, unbuffered channels.
func bSieve() {
	n := count(2000)
	t0 := time.Now()
	ch := make(chan int)
	go func(ch chan<- int) {
		for i := 2; ; i++ {
			ch <- i
		}
	}(ch)
	p := 0
	for i := 0; i < n; i++ {
		p = <-ch
		ch1 := make(chan int)
		go func(in <-chan int, out chan<- int, prime int) {
			for {
				i := <-in
				if i%prime != 0 {
					out <- i
				}
			}
		}(ch, ch1, p)
		ch = ch1
	}
	ms("sieve", t0)
	if n == 2000 && p != 17389 {
		panic("sieve: wrong prime")
	}
}

// Fibonacci with a goroutine per call, joined by a WaitGroup.
func fib(n int, out *int) {
	if n < 2 {
		*out = n
		return
	}
	var a, b int
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { fib(n-1, &a); wg.Done() }()
	go func() { fib(n-2, &b); wg.Done() }()
	wg.Wait()
	*out = a + b
}

func bFib() {
	n := count(27)
	var r int
	t0 := time.Now()
	fib(n, &r)
	ms("fib", t0)
	if n == 27 && r != 196418 {
		panic("fib: wrong")
	}
}

func cpuSec() float64 {
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return float64(ru.Utime.Sec+ru.Stime.Sec) + float64(ru.Utime.Usec+ru.Stime.Usec)/1e6
}

func pct(v []int64, p float64) float64 {
	i := int(p * float64(len(v)-1))
	return float64(v[i]) / 1e3
}

// Sleepers for 1 ms to 1 s: their processor time, and how late they wake up.
func bTimers() {
	n := count(100000)
	late := make([]int64, n)
	rnd := rand.New(rand.NewSource(1))
	d := make([]time.Duration, n)
	for i := range d {
		d[i] = time.Duration(1+rnd.Intn(1000)) * time.Millisecond
	}
	var wg sync.WaitGroup
	wg.Add(n)
	c0 := cpuSec()
	t0 := time.Now()
	for i := 0; i < n; i++ {
		go func(i int) {
			t := time.Now()
			time.Sleep(d[i])
			late[i] = int64(time.Since(t) - d[i])
			wg.Done()
		}(i)
	}
	wg.Wait()
	ms("timers_wall", t0)
	report("timers_cpu", cpuSec()-c0, "s")
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	report("timers_late_p50", pct(late, .5), "us")
	report("timers_late_p99", pct(late, .99), "us")
	report("timers_late_max", pct(late, 1), "us")
}

func procField(key string) int64 {
	b, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, key+":") {
			v, _ := strconv.ParseInt(strings.Fields(l)[1], 10, 64)
			return v
		}
	}
	return 0
}

// Goroutines parked on a channel: to create them, what each takes, to end them.
func bMemory() {
	n := count(100000)
	runtime.GC()
	debug.FreeOSMemory()
	r0 := procField("VmRSS")
	c := make(chan int)
	var started int64
	var wg sync.WaitGroup
	wg.Add(n)
	t0 := time.Now()
	for i := 0; i < n; i++ {
		go func() {
			atomic.AddInt64(&started, 1)
			<-c
			wg.Done()
		}()
	}
	for atomic.LoadInt64(&started) < int64(n) {
		runtime.Gosched()
	}
	nsop("memory_create", t0, n)
	time.Sleep(20 * time.Millisecond)
	r1 := procField("VmRSS")
	report("memory_rss", float64(r1-r0)*1024/float64(n), "B/goroutine")
	t0 = time.Now()
	close(c)
	wg.Wait()
	nsop("memory_teardown", t0, n)
}

// A loop without a call on the only P, and a sleeper that measures how late it wakes up.
func bPreempt() {
	runtime.GOMAXPROCS(1)
	n := count(300)
	go func() {
		for {
		}
	}()
	late := make([]int64, n)
	for i := range late {
		t := time.Now()
		time.Sleep(time.Millisecond)
		late[i] = int64(time.Since(t) - time.Millisecond)
	}
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	report("preempt_late_p50", pct(late, .5), "us")
	report("preempt_late_p99", pct(late, .99), "us")
	report("preempt_late_max", pct(late, 1), "us")
}

// Goroutines in a nanosleep(2) of 10 ms, which blocks the thread.
func bSyscall() {
	n := count(1000)
	var wg sync.WaitGroup
	wg.Add(n)
	t0 := time.Now()
	for i := 0; i < n; i++ {
		go func() {
			ts := syscall.Timespec{Nsec: 10e6}
			syscall.Syscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
			wg.Done()
		}()
	}
	wg.Wait()
	ms("syscall", t0)
	report("syscall_threads", float64(procField("Threads")), "threads")
}

// A trivial system call, announced to the scheduler and bare.
func bGetpid() {
	n := count(5000000)
	t0 := time.Now()
	for i := 0; i < n; i++ {
		syscall.Syscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
	nsop("syscall_enter_exit", t0, n)
	t0 = time.Now()
	for i := 0; i < n; i++ {
		syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
	nsop("syscall_raw", t0, n)
}

// ---- servers ----

func serve(addr string, conn func(net.Conn)) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gobench:", err)
		os.Exit(1)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			continue
		}
		go func() {
			defer c.Close()
			conn(c)
		}()
	}
}

func serveEcho(addr string) {
	serve(addr, func(c net.Conn) {
		buf := make([]byte, 512)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if _, err = c.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}

var answer = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" +
	"Content-Length: 13\r\n\r\nHello, World!")

func serveHTTP(addr string) {
	serve(addr, func(c net.Conn) {
		buf := make([]byte, 2048)
		for have := 0; have < len(buf); {
			n, err := c.Read(buf[have:])
			if err != nil {
				return
			}
			have += n
			if !bytes.HasSuffix(buf[:have], []byte("\r\n\r\n")) {
				continue
			}
			have = 0
			if _, err = c.Write(answer); err != nil {
				return
			}
		}
	})
}

// ---- the table ----

var workloads = []struct {
	name  string
	run   func()
	inAll bool
}{
	{"yield", bYield, true},
	{"yield1k", bYield1k, true},
	{"spawn", bSpawn, true},
	{"spawn_burst", bSpawnBurst, true},
	{"pingpong", bPingpong, true},
	{"chan_buf", bChanBuf, true},
	{"chan_mpmc", bChanMpmc, true},
	{"select", bSelect, true},
	{"mutex", bMutex, true},
	{"mutex_uncontended", bMutexUncontended, true},
	{"mutex_handoff", bMutexHandoff, true},
	{"skynet", bSkynet, true},
	{"sieve", bSieve, true},
	{"fib", bFib, true},
	{"timers", bTimers, true},
	{"memory", bMemory, true},
	{"syscall", bSyscall, true},
	{"getpid", bGetpid, true},
	{"preempt", bPreempt, false},
}

func usage() {
	fmt.Fprint(os.Stderr, "usage: gobench NAME [N] | all | echo ADDR | http ADDR | version; names:")
	for _, w := range workloads {
		fmt.Fprint(os.Stderr, " ", w.name)
	}
	fmt.Fprintln(os.Stderr)
	os.Exit(2)
}

func runWorkloads(name string) {
	found := false
	for _, w := range workloads {
		if w.name == name || name == "all" && w.inAll {
			w.run()
			found = true
		}
	}
	if !found {
		usage()
	}
}

func main() {
	if w, err := strconv.Atoi(os.Getenv("WORKERS")); err == nil && w > 0 {
		runtime.GOMAXPROCS(w)
	}
	if len(os.Args) < 2 {
		usage()
	}
	arg := ""
	if len(os.Args) > 2 {
		arg = os.Args[2]
	}
	switch name := os.Args[1]; name {
	case "version":
		fmt.Println(runtime.Version())
	case "echo":
		serveEcho(arg)
	case "http", "httpraw":
		serveHTTP(arg)
	case "tls":
		if len(os.Args) != 5 {
			usage()
		}
		serveTLS(arg, os.Args[3], os.Args[4])
	default:
		argN, _ = strconv.Atoi(arg)
		runWorkloads(name)
	}
}
