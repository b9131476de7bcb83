// Java: a thousand threads that wait at once, locks, interrupts, an HTTP server with a pool and two
// hundred clients, garbage collections, parallel streams, stacks that overflow.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

public class Crowd {
    interface Work {
        void run(int i) throws Exception;
    }

    static void crowd(int many, Work work) throws Exception {
        Thread[] threads = new Thread[many];
        for (int i = 0; i < many; i++) {
            int k = i;
            threads[i] = new Thread(() -> {
                try {
                    work.run(k);
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            });
            threads[i].start();
        }
        for (Thread t : threads) t.join();
    }

    static long sum;

    static void locks() throws Exception {
        CountDownLatch ready = new CountDownLatch(1000);
        Object lock = new Object();
        crowd(1000, i -> {
            ready.countDown();
            ready.await();
            if (i == 0)
                for (String line : Files.readAllLines(Path.of("/proc/self/status")))
                    if (line.startsWith("Threads")) System.err.println("kernel " + line);
            for (int k = 0; k < 10; k++) {
                synchronized (lock) {
                    sum += i;
                    if (k == 5 && i % 100 == 0) lock.wait(1);
                }
            }
            Thread.sleep(5);
        });
        System.out.println("locks " + sum);
    }

    static void interrupts() throws Exception {
        Object lock = new Object();
        AtomicLong interrupted = new AtomicLong();
        Thread[] waiters = new Thread[20];
        for (int i = 0; i < waiters.length; i++) {
            waiters[i] = new Thread(() -> {
                try {
                    synchronized (lock) {
                        for (;;) lock.wait();
                    }
                } catch (InterruptedException e) {
                    interrupted.incrementAndGet();
                }
            });
            waiters[i].start();
        }
        for (Thread t : waiters) t.interrupt();
        for (Thread t : waiters) t.join();
        System.out.println("interrupts " + interrupted);
    }

    static void http() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 1000);
        var pool = Executors.newFixedThreadPool(50);
        AtomicLong right = new AtomicLong();
        server.createContext("/", e -> {
            byte[] body = ("you asked " + e.getRequestURI().getPath()).getBytes();
            e.sendResponseHeaders(200, body.length);
            e.getResponseBody().write(body);
            e.close();
        });
        server.setExecutor(pool);
        server.start();
        String base = "http://127.0.0.1:" + server.getAddress().getPort();
        crowd(200, i -> {
            for (int k = 0; k < 5; k++) {
                String path = "/" + i + "/" + k;
                var answer = new URL(base + path).openConnection().getInputStream();
                String text = new String(answer.readAllBytes());
                if (text.equals("you asked " + path)) right.incrementAndGet();
            }
        });
        server.stop(0);
        pool.shutdown();
        pool.awaitTermination(10, TimeUnit.SECONDS);
        System.out.println("answers " + right);
    }

    static void garbage() throws Exception {
        AtomicLong right = new AtomicLong();
        crowd(20, i -> {
            for (int round = 0; round < 20; round++) {
                int[][] kept = new int[2000][];
                for (int k = 0; k < kept.length; k++) kept[k] = new int[] {i, round, k};
                if (i == 0) System.gc();
                for (int k = 0; k < kept.length; k++)
                    if (kept[k][0] == i && kept[k][1] == round && kept[k][2] == k)
                        right.incrementAndGet();
            }
        });
        System.out.println("kept " + right);
        System.out.println("stream " + IntStream.range(0, 1000000).parallel().asLongStream().sum());
    }

    static int deep(int n) {
        return deep(n + 1) + 1;
    }

    static void faults() {
        try {
            deep(0);
        } catch (StackOverflowError e) {
            System.out.println("overflow");
        }
        String none = null;
        try {
            none.length();
        } catch (NullPointerException e) {
            System.out.println("null");
        }
    }

    public static void main(String[] args) throws Exception {
        locks();
        interrupts();
        http();
        garbage();
        faults();
        crowd(1, i -> faults());
    }
}
