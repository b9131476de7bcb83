//! Tokio: tasks without stacks. On one thread it is its current_thread runtime, the faster one
//! there; on more the multi-thread one, in which tasks are stolen. A round trip is over channels
//! with one place, since it has none without. Its mutex is the one that a task may hold over an
//! await; for sections without one its documents advise the standard library's.
//!
//!     peer_tokio list|all|WORKLOAD [N]     as peer.h says

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, Mutex, Semaphore};
use tokio::task::yield_now;

fn report(name: &str, value: f64, unit: &str) {
    println!("{name} {value:.6} {unit}");
}

fn nsop(name: &str, t0: Instant, ops: i64) {
    report(name, t0.elapsed().as_nanos() as f64 / ops as f64, "ns/op");
}

async fn yield_among(name: &str, g: i64, n: i64) {
    let t0 = Instant::now();
    let mut all = Vec::new();
    for _ in 0..g {
        all.push(tokio::spawn(async move {
            for _ in 0..n {
                yield_now().await;
            }
        }));
    }
    for task in all {
        task.await.unwrap();
    }
    nsop(name, t0, g * n);
}

async fn spawn(n: i64) {
    let t0 = Instant::now();
    let mut all = Vec::with_capacity(1000);
    for _ in 0..n / 1000 {
        for _ in 0..1000 {
            all.push(tokio::spawn(async {}));
        }
        for task in all.drain(..) {
            task.await.unwrap();
        }
    }
    nsop("spawn", t0, n);
}

async fn pingpong(n: i64) {
    let (a, mut from_a) = mpsc::channel::<i64>(1);
    let (b, mut from_b) = mpsc::channel::<i64>(1);
    tokio::spawn(async move {
        while let Some(v) = from_a.recv().await {
            b.send(v).await.unwrap();
        }
    });
    let mut back = 0;
    let t0 = Instant::now();
    for i in 0..n {
        a.send(i).await.unwrap();
        back = from_b.recv().await.unwrap();
    }
    nsop("pingpong", t0, n);
    assert_eq!(back, n - 1);
}

async fn chan_buf(n: i64) {
    let (tx, mut rx) = mpsc::channel::<i64>(128);
    let mut sum = 0;
    let t0 = Instant::now();
    tokio::spawn(async move {
        for i in 0..n {
            tx.send(i).await.unwrap();
        }
    });
    while let Some(v) = rx.recv().await {
        sum += v;
    }
    nsop("chan_buf", t0, n);
    assert_eq!(sum, n * (n - 1) / 2);
}

async fn mutex_among(name: &str, g: i64, n: i64, yields: bool) {
    let mutex = Arc::new(Mutex::new(0i64));
    let mut all = Vec::new();
    let t0 = Instant::now();
    for _ in 0..g {
        let mutex = mutex.clone();
        all.push(tokio::spawn(async move {
            for _ in 0..n / g {
                let mut held = mutex.lock().await;
                *held += 1;
                if yields {
                    yield_now().await;
                }
            }
        }));
    }
    for task in all {
        task.await.unwrap();
    }
    nsop(name, t0, n);
    assert_eq!(*mutex.lock().await, n / g * g);
}

fn node(up: mpsc::Sender<i64>, num: i64, size: i64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        if size == 1 {
            return up.send(num).await.unwrap();
        }
        let (tx, mut rx) = mpsc::channel(1);
        let part = size / 10;
        for i in 0..10 {
            tokio::spawn(node(tx.clone(), num + i * part, part));
        }
        let mut sum = 0;
        for _ in 0..10 {
            sum += rx.recv().await.unwrap();
        }
        up.send(sum).await.unwrap();
    })
}

async fn skynet(n: i64) {
    let (tx, mut rx) = mpsc::channel(1);
    let t0 = Instant::now();
    tokio::spawn(node(tx, 0, n));
    let sum = rx.recv().await.unwrap();
    report("skynet", t0.elapsed().as_nanos() as f64 / 1e6, "ms");
    assert_eq!(sum, n * (n - 1) / 2);
}

fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn memory(n: i64) {
    let gate = Arc::new(Semaphore::new(0));
    let started = Arc::new(AtomicI64::new(0));
    let mut all = Vec::with_capacity(n as usize);
    let before = resident();
    let t0 = Instant::now();
    for _ in 0..n {
        let (gate, started) = (gate.clone(), started.clone());
        all.push(tokio::spawn(async move {
            started.fetch_add(1, Ordering::Relaxed);
            gate.acquire().await.unwrap().forget();
        }));
    }
    while started.load(Ordering::Relaxed) < n {
        yield_now().await;
    }
    nsop("memory_create", t0, n);
    std::thread::sleep(Duration::from_millis(20));
    report("memory_rss", (resident() - before) as f64 * 1024.0 / n as f64, "B/goroutine");
    let t0 = Instant::now();
    gate.add_permits(n as usize);
    for task in all {
        task.await.unwrap();
    }
    nsop("memory_teardown", t0, n);
}

const WORKLOADS: [&str; 10] = [
    "yield", "yield1k", "spawn", "pingpong", "chan_buf", "mutex", "mutex_uncontended",
    "mutex_handoff", "skynet", "memory",
];

async fn run(name: &str, n: Option<i64>) {
    let count = |preset| n.unwrap_or(preset);
    match name {
        "yield" => yield_among(name, 2, count(3_000_000)).await,
        "yield1k" => yield_among(name, 1000, count(5000)).await,
        "spawn" => spawn(count(1_000_000)).await,
        "pingpong" => pingpong(count(1_000_000)).await,
        "chan_buf" => chan_buf(count(5_000_000)).await,
        "mutex" => mutex_among(name, 8, count(8_000_000), false).await,
        "mutex_uncontended" => mutex_among(name, 1, count(30_000_000), false).await,
        "mutex_handoff" => mutex_among(name, 8, count(800_000), true).await,
        "skynet" => skynet(count(1_000_000)).await,
        _ => memory(count(100_000)).await,
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let name = args.get(1).map_or("", |s| s.as_str()).to_string();
    if name == "list" {
        return WORKLOADS.iter().for_each(|w| println!("{w}"));
    }
    if name != "all" && !WORKLOADS.contains(&name.as_str()) {
        eprintln!("usage: peer_tokio list|all|WORKLOAD [N]");
        std::process::exit(2);
    }
    let n = args.get(2).and_then(|s| s.parse().ok());
    let workers = std::env::var("WORKERS").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let runtime = if workers == 1 {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build().unwrap()
    };
    // In a task: what block_on runs is not on a worker.
    let main = runtime.spawn(async move {
        for w in WORKLOADS {
            if name == "all" || name == w {
                run(w, n).await;
            }
        }
    });
    runtime.block_on(main).unwrap();
}
