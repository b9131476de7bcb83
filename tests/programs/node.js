// Node: worker threads that wait in Atomics, messages, one that is ended in a loop; the pool, with
// hashes, files and zlib; HTTP, a child, a signal.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { execFile } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');
const zlib = require('zlib');
const { promisify } = require('util');

const numbers = n => [...Array(n).keys()];
const all = (n, fn) => Promise.all(numbers(n).map(fn));
const later = ms => new Promise(done => setTimeout(done, ms));

function work() {
    const shared = new Int32Array(workerData);
    for (let i = 0; i < 1000; i++) Atomics.add(shared, 0, 1);
    Atomics.wait(shared, 1, 0);
    parentPort.on('message', n => {
        parentPort.postMessage(n * 2);
        parentPort.close();
    });
}

async function workers(many) {
    const memory = new SharedArrayBuffer(8), shared = new Int32Array(memory);
    const them = numbers(many).map(() => new Worker(__filename, { workerData: memory }));
    const gone = Promise.all(them.map(w => new Promise(done => w.on('exit', done))));
    while (Atomics.load(shared, 0) < many * 1000) await later(5);
    console.error('kernel ' + fs.readFileSync('/proc/self/status', 'utf8').match(/Threads:.*/)[0]);
    Atomics.store(shared, 1, 1);
    Atomics.notify(shared, 1);
    const doubled = await all(many, i => new Promise((done, failed) => {
        them[i].on('message', done).on('error', failed).postMessage(i);
    }));
    console.log('workers', doubled.reduce((a, b) => a + b), (await gone).every(s => s === 0));
    const loop = "require('worker_threads').parentPort.postMessage(0); for (;;) {}";
    const endless = new Worker(loop, { eval: true });
    await new Promise(done => endless.on('message', done));
    console.log('ended', await endless.terminate());
}

async function pool() {
    const hashes = await all(40, i =>
        promisify(crypto.pbkdf2)('word' + i, 'salt', 2000, 16, 'sha256'));
    console.log('hashes', crypto.createHash('md5').update(Buffer.concat(hashes)).digest('hex'));
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'node-'));
    await all(100, i => fs.promises.writeFile(`${dir}/${i}`, 'file ' + i));
    const texts = await all(100, i => fs.promises.readFile(`${dir}/${i}`, 'utf8'));
    fs.rmSync(dir, { recursive: true });
    console.log('files', texts.every((text, i) => text === 'file ' + i));
    const back = await all(20, async i =>
        promisify(zlib.gunzip)(await promisify(zlib.gzip)('a'.repeat(10000 + i))));
    console.log('zlib', back.every((b, i) => b.length === 10000 + i));
}

async function requests() {
    const server = http.createServer((q, a) => setTimeout(() => a.end('you asked ' + q.url), 5));
    await new Promise(done => server.listen(0, '127.0.0.1', done));
    const to = { host: '127.0.0.1', port: server.address().port, agent: false };
    const right = await all(500, i => new Promise((done, failed) => {
        http.get({ ...to, path: '/' + i }, answer => {
            let text = '';
            answer.on('data', d => text += d);
            answer.on('end', () => done(text === 'you asked /' + i));
        }).on('error', failed);
    }));
    server.close();
    console.log('answers', right.filter(r => r).length);
}

async function main() {
    await workers(20);
    await pool();
    await requests();
    console.log('child', (await promisify(execFile)('sh', ['-c', 'echo $((6 * 7))'])).stdout.trim());
    const signal = new Promise(done => process.on('SIGUSR2', done));
    const alive = setInterval(() => {}, 1000);
    process.kill(process.pid, 'SIGUSR2');
    console.log('signal', await signal);
    clearInterval(alive);
}
if (isMainThread) main();
else work();
