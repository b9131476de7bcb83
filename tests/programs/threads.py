# A thousand threads of Python: locks, queues, sleeps, sockets, children, Ctrl-C. What it prints
# does not depend on the schedule; the number of kernel threads goes to stderr.
import concurrent.futures
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
most_kernel_threads = 0


def look():
    global most_kernel_threads
    n = len(os.listdir('/proc/self/task'))
    most_kernel_threads = max(most_kernel_threads, n)


def crowd(fn, n=THREADS):
    threads = [threading.Thread(target=fn, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    look()
    for t in threads:
        t.join()


def locks():
    lock, total, local = threading.RLock(), [0], threading.local()

    def add(i):
        local.mine = i
        for k in range(5):
            with lock, lock:
                n = total[0]
                if k == 2:
                    time.sleep(0)
                total[0] = n + i
            time.sleep(0.002)
            assert local.mine == i
    crowd(add)
    print('locks', total[0])


def queues():
    q, out = queue.Queue(10), queue.Queue()

    def worker(i):
        while (n := q.get()) is not None:
            out.put(n * n)
            q.task_done()
        q.task_done()
    threads = [threading.Thread(target=worker, args=(i,)) for i in range(THREADS)]
    for t in threads:
        t.start()
    for n in range(5 * THREADS):
        q.put(n)
    q.join()
    look()
    for t in threads:
        q.put(None)
    for t in threads:
        t.join()
    print('queues', sum(out.get() for _ in range(5 * THREADS)), out.empty())


def conditions():
    barrier, gate = threading.Barrier(THREADS), threading.Event()
    slots, most, inside = threading.BoundedSemaphore(7), [0], [0]
    guard, served = threading.Condition(), [0]

    def meet(i):
        leads = barrier.wait() == 0
        if leads:
            gate.set()
        gate.wait()
        with slots:
            with guard:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.0002)
            with guard:
                inside[0] -= 1
                served[0] += 1
                guard.notify_all()
        with guard:
            assert guard.wait_for(lambda: served[0] >= i % 100, 60)
    crowd(meet)
    print('conditions', served[0], most[0] <= 7, inside[0])


def sockets():
    server = socket.create_server(('127.0.0.1', 0), backlog=THREADS)
    address, answers = server.getsockname(), queue.Queue()

    def serve(connection):
        with connection, connection.makefile('rwb') as f:
            for line in f:
                f.write(b'%d\n' % (int(line) + 1))
                f.flush()

    def accept():
        for _ in range(THREADS // 2):
            threading.Thread(target=serve, args=(server.accept()[0],)).start()

    def ask(i):
        with socket.create_connection(address) as s, s.makefile('rwb') as f:
            n = i
            for _ in range(5):
                f.write(b'%d\n' % n)
                f.flush()
                n = int(f.readline())
            answers.put(n)
    acceptor = threading.Thread(target=accept)
    acceptor.start()
    crowd(ask, THREADS // 2)
    acceptor.join()
    server.close()
    while threading.active_count() > 1:
        time.sleep(0.001)
    print('sockets', sum(answers.get() for _ in range(THREADS // 2)))


def children():
    said = queue.Queue()

    def run(i):
        done = subprocess.run(['sh', '-c', f'read x; echo $((x + {i}))'], input='7', text=True,
                              capture_output=True)
        said.put((done.returncode, int(done.stdout)))
    crowd(run, 50)
    pid = os.fork()
    if pid == 0:
        t = threading.Thread(target=time.sleep, args=(0.01,))
        t.start()
        t.join()
        os._exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    right = sorted(said.get() for _ in range(50)) == [(0, 7 + i) for i in range(50)]
    print('children', right, status)


def executor():
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        total = sum(pool.map(lambda n: (time.sleep(0.001), n)[1], range(2000)))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        failed = pool.submit(lambda: 1 // 0)
        print('executor', total, type(failed.exception()).__name__)


# main waits for a lock, sleeps, reads a pipe; each time a thread sends it Ctrl-C.
def interrupts():
    r, w = os.pipe()
    waits = [threading.Event().wait, lambda: time.sleep(60), lambda: os.read(r, 1),
             threading.Thread(target=os.read, args=(r, 1), daemon=True).start]
    seen = 0
    for wait in waits[:3]:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            wait()
        except KeyboardInterrupt:
            seen += 1
    handled = []
    signal.signal(signal.SIGUSR1, lambda *_: handled.append(threading.current_thread().name))
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    time.sleep(0.3)
    waits[3]()  # a daemon that waits for ever does not hold the program up
    print('interrupts', seen, handled)


scenes = [locks, queues, conditions, sockets, children, executor, interrupts]
chosen = sys.argv[2:]
for scene in scenes:
    if not chosen or scene.__name__ in chosen:
        scene()
        sys.stdout.flush()
print(f'most kernel threads: {most_kernel_threads}', file=sys.stderr)
