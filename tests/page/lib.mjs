// What the page's tests share: the browser, waiting, comparing pictures (tests/long/browser.sh).
import { createRequire } from 'node:module';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { deflateSync } from 'node:zlib';

const require = createRequire(process.env.MODULES + '/');
const { chromium } = require('playwright-core');
export const axe = require.resolve('axe-core/axe.min.js');

// Text is drawn without hinting and in grey, and no other font than DejaVu is there
// (FONTCONFIG_FILE): so that pictures are the same on every machine.
export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-proxy-server',
    '--font-render-hinting=none', '--disable-lcd-text', '--force-color-profile=srgb'],
});

export function check(holds, what) {
  if (!holds) throw new Error(what);
}
export function same(got, want, what) {
  check(got === want, `${what}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
}

// Collects what goes wrong in a page: its console has to stay empty.
export function watch(page) {
  const wrong = [];
  page.on('pageerror', e => wrong.push(String(e)));
  page.on('console', m => { if (m.type() === 'error') wrong.push(m.text()); });
  return wrong;
}

// ---- pictures ----

// A picture as the tests keep it, a third of the browser's: a PNG with a palette. The 128 colours
// that are there most often stay as they are; the others, of the edges of letters, are 5 steps of
// each.
function pack({ width, height, data }) {
  const often = new Map(), at = i => data[i] << 16 | data[i + 1] << 8 | data[i + 2];
  for (let i = 0; i < data.length; i += 4) often.set(at(i), (often.get(at(i)) || 0) + 1);
  const palette = [...often].sort((a, b) => b[1] - a[1]).slice(0, 128).map(c => c[0]);
  const place = new Map(palette.map((c, i) => [c, i]));
  const rows = Buffer.alloc(height * (width + 1)), step = v => Math.round(v / 63.75);
  for (let i = 0, y = 0; y < height; y++)
    for (let x = 1; x <= width; x++, i += 4) {
      const known = place.get(at(i)), [r, g, b] = data.subarray(i, i + 3);
      rows[y * (width + 1) + x] = known ?? 128 + 25 * step(r) + 5 * step(g) + step(b);
    }
  const colours = Buffer.alloc(253 * 3);
  palette.forEach((c, i) => colours.writeUIntBE(c, 3 * i, 3));
  for (let i = 0; i < 125; i++)
    colours.set([i / 25 | 0, (i / 5 | 0) % 5, i % 5].map(v => v * 63.75), 3 * (128 + i));
  const chunk = (kind, body) => {
    const all = Buffer.concat([Buffer.alloc(4), Buffer.from(kind), body, Buffer.alloc(4)]);
    all.writeUInt32BE(body.length);
    all.writeUInt32BE(crc(all.subarray(4, -4)), all.length - 4);
    return all;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 3], 8);
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head),
    chunk('PLTE', colours), chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0))]);
}
function crc(bytes) {
  let c = ~0;
  for (const b of bytes) {
    c ^= b;
    for (let k = 0; k < 8; k++) c = c >>> 1 ^ (c & 1 ? 0xEDB88320 : 0);
  }
  return ~c >>> 0;
}

// A picture's pixels, read by the browser.
async function pixels(page, png) {
  const r = await page.evaluate(async text => {
    const image = await createImageBitmap(await (await fetch(text)).blob());
    const c = new OffscreenCanvas(image.width, image.height).getContext('2d');
    c.drawImage(image, 0, 0);
    const data = c.getImageData(0, 0, image.width, image.height).data;
    let s = '';
    for (let i = 0; i < data.length; i += 32768)
      s += String.fromCharCode(...data.subarray(i, i + 32768));
    return { width: image.width, height: image.height, data: btoa(s) };
  }, 'data:image/png;base64,' + png.toString('base64'));
  return { ...r, data: Buffer.from(r.data, 'base64') };
}

// A pixel of an even area (its neighbours are like it) differs if one of its colours does by more
// than 6 of 255: only rounding is less. One at an edge differs by more than 80: a kept picture is up
// to 32 off there by its steps, and another version of the browser draws the edge of a letter a
// little differently; a letter that is there or not is 150 and more. Such pixels may be 12 in a
// square of 16 x 16: a box that has moved by one pixel, a word that has changed or another colour is
// more than that, whatever the size of the picture. Chromium 147 and 156 differ in the same pixels
// from what is kept, those of the palette: at most 385 in a picture.
export async function compare(page, got, name, context) {
  const file = `tests/page/pictures/${name}.png`, other = await context.newPage();
  const x = await pixels(other, got);
  if (process.env.UPDATE) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, pack(x));
  }
  check(existsSync(file), `${file} is not there (UPDATE=1 makes it)`);
  const y = await pixels(other, readFileSync(file)), squares = new Map();
  await other.close();
  let all = 0, why = '';
  if (x.width !== y.width || x.height !== y.height)
    why = `${x.width} x ${x.height}, not ${y.width} x ${y.height}`;
  const beside = [-4, 4, -4 * y.width, 4 * y.width];
  const even = i => beside.every(d => [0, 1, 2].every(k => y.data[i + k] === y.data[i + d + k]));
  for (let i = 0; !why && i < x.data.length; i += 4) {
    const far = Math.max(...[0, 1, 2].map(k => Math.abs(x.data[i + k] - y.data[i + k])));
    if (far <= 6 || (far <= 80 && !even(i))) continue;
    const square = `${i / 4 % x.width >> 4 << 4},${Math.floor(i / 4 / x.width) >> 4 << 4}`;
    squares.set(square, (squares.get(square) || 0) + 1);
    all++;
  }
  const bad = [...squares].filter(s => s[1] > 12).map(s => s[0]);
  if (bad.length) why = `${bad.length} squares differ, at ${bad.slice(0, 5).join(' ')}`;
  const kept = `${process.env.OUT || 'build'}/${name}.png`;
  if (why) writeFileSync(kept, got);
  check(!why, `${name}: ${why}; the new picture is ${kept}`);
  console.log(`${name}: ${all} pixels differ`);
}
