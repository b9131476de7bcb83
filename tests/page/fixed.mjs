// The page over data that never change: what it does, and how it looks, compared with the pictures
// in tests/page/pictures. UPDATE=1 makes them anew: look at each of them then.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { axe, check, compare, launch, same, watch } from './lib.mjs';

// ---- the data ----

const seconds = 60, workers = 12;
function figures(i) { // at second i: waves, no chance
  const wave = (n, by) => Math.round(n * (1 + Math.sin(i / by)));
  return { now: 1000000 + 1000 * i, goroutines: 60 + wave(20, 3), maxprocs: 4, threads: 9,
    global_queue: 3, local_queues: wave(9, 2), switches: 700 * i + wave(300, 4), steals: 20 * i,
    goroutines_created: 90 * i + wave(50, 5), netpoll_wakeups: 5 * i, preemptions: 30 * i,
    preempt_requests: 1447, retakes: 6, handoffs: 200, poll_waiters: 2, timers: 1, stopping: 0 };
}
const who = { program: 'orders', host: 'lab', pid: 4711, began: 1767225600000, version: '0.1.0',
  flight: 3000, leak: 0 };
const ps = [
  { id: 0, status: 'running', m: 3, g: 7, name: 'worker', q: 19, next: 12, timers: 2,
    switches: 4000, ran: 3000, held: 0 },
  { id: 1, status: 'running', m: 4, g: 8, name: 'spin <b>', q: 2, next: 0, timers: 0,
    switches: 3000, ran: 412000, held: 402 },
  { id: 2, status: 'running', m: 5, g: 90, name: 'gort: live page', own: 1, q: 0, next: 0,
    timers: 0, switches: 2000, ran: 10, held: 0 },
  { id: 3, status: 'idle', q: 0, next: 0, timers: 0, switches: 1000 }];
const ms = [{ id: 3, state: 'running', p: 0, g: 7 }, { id: 4, state: 'running', p: 1, g: 8 },
  { id: 5, state: 'running', p: 2, g: 90 }, { id: 6, state: 'idle' }, { id: 7, state: 'idle' },
  { id: 8, state: 'syscall', g: 40 }, { id: 9, state: 'preempted', g: 41 },
  { id: 0, state: 'plain' }];
const groups = [['stuck_here', 'chan receive', 30, 128000], ['worker', 'chan receive', 9, 155],
  ['worker', 'runnable', 2, 187], ['worker', 'running', 1, 4], ['caller', 'syscall', 1, 91],
  ['spin <b>', 'running', 1, 412]].map(([name, status, n, oldest], i) =>
  ({ name, status, n, oldest, one: i + 7 }));
const longest = [...Array(12)].map((_, i) => ({ id: 30 + i, name: 'stuck_here',
  status: 'chan receive', ms: 128000 - i, entry: 'stuck_here', parent: 1, created_by: 'main' }));
const sites = { ms: 600000, goroutines: 31, sites: [
  { n: 30, status: 'chan receive', youngest: 600100, oldest: 905000, entry: 'stuck_here',
    created_by: 'start_all' },
  { n: 1, status: 'select', youngest: 700000, oldest: 700000, entry: 'ticker', created_by: 'main' }
] };
const people = [...Array(44)].map((_, i) => ({ id: 50 - i, name: i < 30 ? 'stuck_here' : 'worker',
  status: 'chan receive', ms: 60000 + i, entry: i < 30 ? 'stuck_here' : 'work', parent: 1,
  created_by: 'main' }));

function varint(n) {
  const out = [];
  for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 | 128);
  return [...out, n];
}
const number = (field, n) => [field << 3, ...varint(n)];
const bytes = (field, b) => [field << 3 | 2, ...varint(b.length), ...b];
function pprof() { // as pprof.c writes it
  const words = [''], word = s => words.indexOf(s) >= 0 ? words.indexOf(s) : words.push(s) - 1;
  const names = [];
  const at = name => names.includes(name) ? names.indexOf(name) + 1 : names.push(name);
  const out = [];
  ['samples', 'cpu'].forEach((type, i) => out.push(...bytes(1,
    [...number(1, word(type)), ...number(2, word(i ? 'nanoseconds' : 'count'))])));
  const sample = (label, stack, n) => out.push(...bytes(2, [
    ...stack.split(' ').reverse().flatMap(f => number(1, at(f))),
    ...number(2, n), ...number(2, n * 1e7),
    ...bytes(3, [...number(1, word('goroutine')), ...number(2, word(label))])]));
  const start = '*arch_entry *goroutine_entry ';
  sample('worker', start + 'work parse scan', 240);
  sample('worker', start + 'work parse scan memchr', 90);
  sample('worker', start + 'work parse', 30);
  sample('worker', start + 'work *gort_chan_send *send_locked *park', 25);
  sample('indexer', start + 'index_all sort compare', 120);
  sample('indexer', start + 'index_all sort', 40);
  sample('indexer', start + 'index_all 0x7f00', 5);
  sample('sleeper', start + '*gort_sleep *sleep_until', 2);
  sample('(scheduler)', '*schedule_loop *find_runnable', 18);
  names.forEach((name, i) => {
    const ours = name[0] === '*';
    out.push(...bytes(4, [...number(1, i + 1), ...number(3, 4096 + i),
      ...bytes(4, number(1, i + 1))]));
    out.push(...bytes(5, [...number(1, i + 1), ...number(2, word(ours ? name.slice(1) : name)),
      ...number(4, word(ours ? 'gort' : name.startsWith('0x') ? 'libc.so.6' : 'orders'))]));
  });
  words.forEach(w => out.push(...bytes(6, new TextEncoder().encode(w))));
  return Buffer.from(out);
}
const profile = pprof();

// 40 ms: a producer wakes workers in turn, which compute; one calls.
function timeline() {
  const items = [[0, 2, 'producer'], [0, 3, 'caller'], [0, 99, 'gort: live page']];
  for (let g = 0; g < workers; g++) items.push([0, 10 + g, 'worker']);
  for (let i = 0; i < 80; i++) {
    const t = 500000 * i, g = 10 + i % workers, p = 1 + i % 3;
    items.push([1, 0, t, 60000, 2, 0, ...(i ? [t - 20000, -1, 0] : [])]);
    items.push([1, p, t + 80000, 900000 + 40000 * (i % 7), g, i % 5 ? 1 : 2, t + 50000, 0, 2]);
  }
  items.push([1, 0, 70000, 300000, 99, 1], [2, 7, 5000000, 12000000, 3],
    [2, 8, 9000000, 3000000, 4], [3, 20000000, 400000]);
  return { items, ends: ['sleep', 'chan receive', 'preempted'], length: 40000000, dropped: 0,
    full: false };
}

// ---- the server ----

const asked = []; // addresses, in order
const gone = [];  // requests that the client has given up
const streams = new Set();
const snapshot = (i, more) => `data: ${JSON.stringify({ ...figures(i), ps, ms, ...more })}\n\n`;
const json = (r, what) => {
  r.writeHead(200, { 'Content-Type': 'application/json' });
  r.end(JSON.stringify(what));
};
const server = createServer((q, r) => {
  const at = new URL(q.url, 'http://x');
  asked.push(q.url);
  r.on('close', () => { if (!r.writableEnded) gone.push(at.pathname); });
  if (at.pathname === '/') {
    r.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
    r.end(readFileSync('web/page.html'));
  } else if (at.pathname === '/events') {
    r.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (let i = 0; i < seconds; i++) r.write(snapshot(i, i ? {} : { who, groups, longest }));
    streams.add(r);
  } else if (at.pathname === '/goroutines' && at.searchParams.has('id')) {
    r.end(`goroutine ${at.searchParams.get('id')} [chan receive, 60s]:\n  0x55e0 stuck_here+0x1f`);
  } else if (at.pathname === '/goroutines') {
    const want = at.searchParams, has = g => (!want.has('name') || g.name === want.get('name')) &&
      g.name.includes(want.get('filter') || '');
    const found = people.filter(has);
    json(r, { goroutines: found, matched: found.length, sent: found.length });
  } else if (at.pathname === '/leaks') {
    json(r, sites);
  } else if (at.pathname === '/debug/pprof/block') {
    r.writeHead(409).end('another one is running\n');
  } else if (at.pathname.startsWith('/debug/pprof/')) {
    r.end(profile);
  } else if (at.searchParams.has('last')) {
    json(r, timeline());
  } else if (at.pathname !== '/trace') { // a recording never ends: until its client goes
    r.writeHead(404).end();
  }
});
await new Promise(go => server.listen(0, '127.0.0.1', go));
const base = `http://127.0.0.1:${server.address().port}/`;

// ---- what it does ----

const browser = await launch();
async function opened(width, scheme, height = 900) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme,
    locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  page.wrong = watch(page);
  await page.goto(base);
  await page.waitForFunction(() => before && before.now === 1059000 && !$('leaks').hidden &&
    $('matched').textContent === '44 goroutines');
  return page;
}
const rows = (page, id) => page.locator(`#${id} tbody tr`).count();
const status = page => page.textContent('#view-status');
const until = (page, what, arg) => page.waitForFunction(what, arg);
const last = path => asked.filter(u => u.startsWith(path)).pop();
async function done(page) {
  same(page.wrong.join('; '), '', 'the console');
  await page.context().close();
}
const tests = {};

tests.identity = async () => {
  const page = await opened(1280, 'light');
  same(await page.title(), 'orders (4711) · gort', 'the title');
  same(await page.textContent('#who'), 'PID 4711 on lab · since 1 Jan 2026, 00:00:00 · ' +
    'gort 0.1.0 · 4 Ps (MAXPROCS)', 'who it is');
  const text = await page.textContent('#ps');
  check(text.includes('G8  spin <b>') && !text.includes('live page'), 'Ps: ' + text);
  check((await page.textContent('#stalls')).includes('G8 spin <b>P1402 ms'), 'no stall');
  same(await rows(page, 'stalls'), 1, 'one stall is told once');
  same(await rows(page, 'longest'), 12, 'longest');
  same(await rows(page, 'leaks'), 2, 'leaks');
  await page.selectOption('#minutes', '60');
  await until(page, () => performance.getEntriesByType('resource')
    .some(e => e.name.endsWith('minutes=60')));
  await done(page);
};

tests.filter = async () => {
  const page = await opened(1280, 'light');
  await page.fill('#filter', 'worker');
  await until(page, () => $('matched').textContent === '14 goroutines');
  check(last('/goroutines').includes('filter=worker'), last('/goroutines'));
  await page.fill('#filter', '');
  await page.click('#groups tbody tr:first-child td:nth-child(3)'); // anywhere in the row
  await until(page, () => $('matched').textContent === '30 goroutines');
  check(last('/goroutines').includes('name=stuck_here&status=chan+receive'), last('/goroutines'));
  same(await page.getAttribute('#group', 'aria-label'), 'All, not only stuck_here, chan receive',
    'the label');
  await page.click('#group');
  await until(page, () => $('matched').textContent === '44 goroutines' && $('group').hidden);
  await page.click('#list tbody tr:nth-child(2)');
  await until(page, () => $('stack').textContent.startsWith('goroutine 49 '));
  await page.click('#leaks tbody tr:first-child'); // its function, in the list
  await until(page, () => $('matched').textContent === '30 goroutines');
  await page.click('#longest tbody tr:first-child');
  await until(page, () => $('stack').textContent.startsWith('goroutine 30 '));
  await done(page);
};

tests.own = async () => {
  const page = await opened(1280, 'light');
  check(!asked.filter(u => u.startsWith('/events')).pop().includes('own'), 'own unasked');
  check(!last('/goroutines').includes('own'), 'own unasked');
  await page.check('#own');
  await until(page, () => document.querySelector('#ps').textContent.includes('gort: live page'));
  same(last('/events'), '/events?own=1', 'the stream');
  check(last('/goroutines').includes('own=1'), last('/goroutines'));
  await done(page);
};

tests.keyboard = async () => {
  const page = await opened(1280, 'light');
  const focused = () => page.evaluate(() => document.activeElement.id ||
    document.activeElement.textContent.trim());
  const order = [];
  for (let i = 0; i < 8; i++) { await page.keyboard.press('Tab'); order.push(await focused()); }
  same(order.join(' '), 'timeline trace seconds CPU time Waiting Locks Stacks pause', 'the order');
  await page.focus('#groups button');
  for (const stream of streams) stream.write(snapshot(seconds, { groups, longest }));
  await until(page, () => before.now === 1060000);
  same(await focused(), 'stuck_here', 'the focus after new rows');
  await page.keyboard.press('Enter');
  await until(page, () => $('matched').textContent === '30 goroutines');
  await page.focus('#pause');
  await page.keyboard.press('Space');
  same(await page.getAttribute('#pause', 'aria-pressed'), 'true', 'pause');
  for (const stream of streams) stream.write(snapshot(seconds + 7));
  await page.waitForTimeout(0);
  await page.evaluate(() => new Promise(go => requestAnimationFrame(go)));
  same(await page.evaluate(() => before.now), 1060000, 'a page that is paused');
  await done(page);
};

tests.flame = async () => {
  const page = await opened(1280, 'light');
  await page.selectOption('#seconds', '1');
  await page.click('button[data-title="CPU time"]');
  await page.waitForSelector('#view.flame canvas');
  same(last('/debug/pprof/profile'), '/debug/pprof/profile?seconds=1', 'the profile');
  same(await status(page), '5.70 s in all', 'the sum');
  const names = () => page.evaluate(() => shown.boxes.map(b => b.n.name));
  let all = await names();
  check(all.includes('gort_chan_send') && all.includes('gort_sleep') && all.includes('libc.so.6'),
    'frames: ' + all);
  check(!all.some(n => /entry|park|send_locked|sleep_until|find_runnable/.test(n)),
    'plumbing: ' + all);
  await page.check('#library');
  all = await names();
  check(all.includes('goroutine_entry') && all.includes('park'), 'no plumbing: ' + all);
  await page.uncheck('#library');
  const size = await page.evaluate(() => [canvas.clientWidth, canvas.clientHeight]);
  check(size[0] > 1220 && size[1] > 700, 'as large as the window: ' + size);

  const box = name => page.evaluate(name => {
    const b = shown.boxes.find(b => b.n.name === name), r = canvas.getBoundingClientRect();
    return { x: r.left + b.x + b.width / 2, y: r.top + b.y + 10, width: b.width };
  }, name);
  const before = await box('sort');
  await page.mouse.move(before.x, before.y);
  same(await status(page), 'sort: 1.60 s, 28.1 %; itself 400 ms, 7.0 %', 'hover');
  await page.mouse.click(before.x, before.y);
  check((await box('sort')).width > size[0] - 5, 'zoomed in');
  await page.keyboard.press('ArrowDown');
  check((await status(page)).startsWith('compare: '), await status(page));
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  check((await status(page)).startsWith('index_all: '), await status(page));
  await page.keyboard.press('Escape');
  check(await page.evaluate(() => view.open && !shown.zoomed()), 'Escape: out of the zoom');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  check((await status(page)).startsWith('indexer: '), await status(page));
  await page.keyboard.press('Enter');
  check(await page.evaluate(() => shown.root.name === 'indexer'), 'Enter: zoom');

  await page.fill('#search', 'SCAN');
  same(await status(page), '1 found, 3.30 s, 57.9 %', 'search');
  const [file] = await Promise.all([page.waitForEvent('download'), page.click('#raw')]);
  same(file.suggestedFilename(), 'profile.pb', 'the name of the file');
  check(readFileSync(await file.path()).equals(profile), 'for pprof: another profile');
  await page.click('#table');
  check((await page.textContent('#pane')).includes('scan2.40 s42.1 %3.30 s57.9 %'), 'the table');
  await page.keyboard.press('Escape');
  check(await page.evaluate(() => !view.open || !shown.zoomed()), 'Escape');
  await page.keyboard.press('Escape');
  await until(page, () => !view.open);
  await page.click('button[data-title="Waiting"]');
  await until(page, () => $('state').textContent === 'Waiting, 1 s: another one is running');
  page.wrong.length = 0; // the browser reports the 409
  await done(page);
};

tests.timeline = async () => {
  const page = await opened(1280, 'light');
  same(await page.textContent('#timeline'), 'Timeline, last 3.00 s', 'the button');
  await page.click('#timeline');
  await page.waitForSelector('#view.time canvas');
  await until(page, () => shown);
  same(last('/trace'), '/trace?format=timeline&last=1', 'the flight recorder');
  same(await status(page), '40.0 ms, 162 slices.', 'the sum');
  same(await page.evaluate(() => shown.rows.map(r => r.name).join(' ')),
    'P0 P1 P2 P3 calls calls', 'rows');
  const range = () => page.evaluate(() => [Math.round(shown.from), Math.round(shown.to)]);
  await page.keyboard.press('n');
  same(await status(page), 'producer (G2) ran on P0 for 60.0 µs from 0 ns on, then: sleep', 'n');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('n');
  same(await status(page), 'worker (G10) ran on P1 for 900 µs from 80.0 µs on, then: preempted. ' +
    'Made ready by producer (G2) on P0, 30.0 µs before', 'a slice with its waker');
  await page.keyboard.press('w');
  check((await status(page)).startsWith('producer (G2) ran on P0'), 'w: ' + await status(page));
  await page.keyboard.press('+');
  const zoomed = await range();
  same(zoomed.join(), '7500000,32500000', '+');
  await page.keyboard.press('ArrowRight');
  same((await range()).join(), '10625000,35625000', 'right');
  const r = await page.locator('#view canvas').boundingBox();
  await page.mouse.move(r.x + 600, r.y + 60);
  await page.mouse.wheel(0, -400);
  const [from, to] = await range();
  check(to - from < 1e7 && from > 10625000, `wheel: ${from} ${to}`);
  await page.mouse.down();
  await page.mouse.move(r.x + 700, r.y + 60, { steps: 3 });
  await page.mouse.up();
  const moved = await range();
  check(moved[0] < from && Math.abs(moved[1] - moved[0] - (to - from)) < 2, 'drag: ' + moved);
  await page.keyboard.press('Escape');
  same((await range()).join(), '0,40000000', 'Escape: the whole');
  await page.fill('#search', 'producer');
  same(await status(page), '80 slices found, 4.80 ms', 'search');
  await page.click('#table');
  check((await page.textContent('#pane')).includes('producer1804.80 ms60.0 µs'), 'the table');
  await page.click('#table');
  await page.click('#zoom-in');
  same((await range()).join(), '10000000,30000000', 'the button');
  const hot = { items: [], ends: [], length: 5e7, dropped: 2, full: true };
  same(await page.evaluate(d => new Timeline(d, '', 1e9).summary(), hot), 'Nothing ran in this ' +
    'time. Then there were 2 MB of events, the most for a timeline. It was cut: there were more. ' +
    '2 pieces were lost.', 'a busy program');
  await page.click('#again');
  await until(page, () => $('view-status').textContent === 'Recording for 1 s…');
  await done(page);
};

// Without the flight recorder a short recording is made, which ends with its client.
tests.recording = async () => {
  who.flight = 0;
  const page = await opened(1280, 'light');
  who.flight = 3000;
  same(await page.textContent('#timeline'), 'Timeline, 1 s', 'the button');
  asked.length = gone.length = 0;
  await page.click('#timeline');
  await until(page, () => $('view-status').textContent === 'Recording for 1 s…');
  while (!last('/trace')) await page.waitForTimeout(10);
  same(last('/trace'), '/trace?format=timeline&seconds=1', 'the request');
  check(!gone.includes('/trace'), 'it has ended by itself');
  await page.click('#close');
  while (!gone.includes('/trace')) await page.waitForTimeout(10);
  await until(page, () => $('state').textContent === 'Recording for 1 s: given up' &&
    !$('timeline').disabled);
  await done(page);
};

// ---- how it looks ----

async function accessible(page, what) {
  await page.addScriptTag({ path: axe });
  const found = await page.evaluate(async () => (await globalThis.axe.run()).violations.map(v =>
    v.id + ': ' + v.nodes.slice(0, 3).map(n => n.target + ' ' + n.failureSummary).join('; ')));
  same(found.join('\n'), '', what + ', axe');
}
async function picture(page, name, options) {
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.activeElement.blur());
  const wide = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check(wide[0] <= wide[1], `${name}: ${wide[0]} pixels wide in ${wide[1]}`);
  await compare(page, await page.screenshot({ animations: 'disabled', ...options }), name,
    page.context());
}
for (const [width, height] of [[1280, 900], [390, 700]])
  for (const scheme of ['light', 'dark'])
    tests[`looks-${width}-${scheme}`] = async () => {
      const page = await opened(width, scheme, height), as = `${width}-${scheme}`;
      await page.click('#groups tbody tr:first-child');
      await until(page, () => $('matched').textContent === '30 goroutines');
      await page.click('#list tbody tr:first-child');
      await until(page, () => $('stack').textContent.startsWith('goroutine 50'));
      await page.evaluate(() => scrollTo(0, 0));
      await picture(page, 'page-' + as, { fullPage: true });
      await accessible(page, 'page-' + as);
      await page.click('#timeline');
      await until(page, () => shown && view.className === 'time');
      for (let i = 0; i < (width < 500 ? 6 : 4); i++) await page.keyboard.press('+');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('n');
      await picture(page, 'timeline-' + as);
      await accessible(page, 'timeline-' + as);
      await page.click('#close');
      await page.click('button[data-title="CPU time"]');
      await until(page, () => shown && view.className === 'flame');
      await page.fill('#search', 'parse');
      await picture(page, 'flame-' + as);
      await accessible(page, 'flame-' + as);
      await page.click('#table');
      await accessible(page, 'table-' + as);
      await done(page);
    };

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
  try {
    await test();
    console.log(`ok ${name}`);
  } catch (e) {
    failed++;
    console.log(`FAILED ${name}: ${e.message}`);
    console.log((e.stack || '').split('\n').slice(1, 5).join('\n'));
  }
}
await browser.close();
server.closeAllConnections();
server.close();
process.exitCode = failed ? 1 : 0;
