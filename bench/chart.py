"""The chart of the README: gort against Go, pthreads and the best peer, a line for each thing.

Each mark stands where its figure is as a multiple of gort's, on one logarithmic axis: to the right
of the line at 1 it is slower (or takes more), to the left it is ahead of gort. The best peer is
that with the least multiple in this line, whoever it is; its name stands beside the mark. Nothing
is left out because of where it stands: a line is there if gort has the figure, and a mark if the
other has it.
"""
import math
from html import escape

NAMES = {'argobots': 'Argobots', 'boost_fiber': 'Boost.Fiber', 'libdill': 'libdill',
         'libfiber': 'libfiber', 'libgo': 'libgo', 'photon': 'Photon', 'tokio': 'Tokio',
         'go': 'Go', 'pthread': 'pthreads'}
LINES = [('yield', 'yield'), ('spawn', 'start and end one'),
         ('pingpong', 'round trip over channels'), ('chan_buf', 'buffered channel'),
         ('mutex', 'mutex, 8 contending'), ('skynet', 'a tree of a million'),
         ('memory_create', 'start one that waits'), ('memory_rss', 'memory of one that waits')]
LIGHT = {'ink': '#1f2328', 'dim': '#59636e', 'grid': '#d8dee4', 'page': '#ffffff',
         'gort': '#0a7d33', 'go': '#0a6ebd', 'pthread': '#8250a8', 'peer': '#b35900'}
DARK = {'ink': '#e6edf3', 'dim': '#9198a1', 'grid': '#30363d', 'page': '#0d1117',
        'gort': '#3fb950', 'go': '#58a6ff', 'pthread': '#c297ff', 'peer': '#f0883e'}
LABEL, VALUE, PANEL, GAP, ROW, TOP = 176, 60, 262, 20, 38, 64


def name_of(who):
    return NAMES.get(who, who)


def short(value, unit):
    """A time or a size as one says it: 34 ns, 2.1 us, 106 ms, 4.2 KB."""
    steps = {'ns/op': (1e3, ['ns', 'us', 'ms']), 'ms': (1e3, ['ms', 's']),
             'B/goroutine': (1e3, ['B', 'KB', 'MB'])}
    step, units = steps.get(unit, (1e3, [unit]))
    while value >= step and len(units) > 1:
        value, units = value / step, units[1:]
    return f'{value:.0f} {units[0]}' if value >= 100 else f'{value:.2g} {units[0]}'


def multiple(x):
    return f'{x:.0f}' if x >= 10 else f'{x:.1f}' if x >= 0.95 else f'{x:.2f}'


def marks_of(row, peers):
    """[(kind, name, multiple of gort's)]: Go, pthreads and the best peer, those that are there."""
    ratios = row['ratios']
    marks = [(who, name_of(who), ratios[who]) for who in ('go', 'pthread') if ratios.get(who)]
    best = min((p for p in peers if ratios.get(p)), key=lambda p: ratios[p], default=None)
    if best:
        marks.append(('peer', name_of(best), ratios[best]))
    return marks


class Axis:
    """Multiples from low to high, between two places."""

    def __init__(self, values, left):
        self.low = math.log10(min([0.5] + [v * 0.6 for v in values]))
        self.high = math.log10(max([10] + [v * 1.6 for v in values]))
        self.left = left

    def x(self, v):
        return self.left + (math.log10(v) - self.low) / (self.high - self.low) * PANEL

    def ticks(self):
        ten = [10 ** e for e in range(math.ceil(self.low), math.floor(self.high) + 1)]
        return ten if 0.1 in ten or self.low < -0.5 else [0.5] * (self.low < -0.3) + ten


class Drawing:
    def __init__(self, colours):
        self.colours, self.out = colours, []

    def text(self, x, y, s, colour='ink', size=12, anchor='start', weight='normal'):
        """With a rim in the colour of the page, so that a line behind it does not cross it."""
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" '
                        f'text-anchor="{anchor}" fill="{self.colours[colour]}" '
                        f'paint-order="stroke" '
                        f'stroke="{self.colours["page"]}" stroke-width="3">{escape(s)}</text>')

    def line(self, x1, y1, x2, y2, colour='grid', width=1):
        self.out.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                        f'stroke="{self.colours[colour]}" stroke-width="{width}"/>')

    def mark(self, x, y, kind):
        c = self.colours[kind]
        self.out.append({
            'go': f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{c}"/>',
            'pthread': f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" '
                       f'fill="{c}"/>',
            'peer': f'<path d="M{x:.1f} {y - 6:.1f}l6 6-6 6-6-6z" fill="{c}"/>'}[kind])

    def svg(self, width, height):
        body = '\n'.join(self.out)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" role="img" '
                f'aria-label="gort against Go, pthreads and the best peer">\n{body}\n</svg>\n')


def row_of(d, axis, y, row, peers):
    """Go's multiple is told above its mark, the peer's below it, that of the pthreads beside it."""
    d.text(axis.left - 8, y + 4, short(row['median']['gort'], row['unit']), 'gort', 11, 'end')
    marks = marks_of(row, peers)
    for kind, _, v in marks:
        d.mark(axis.x(v), y, kind)
    for kind, name, v in marks:
        x = axis.x(v)
        if kind == 'go':
            d.text(x, y - 8, multiple(v), 'go', 10, 'middle')
        elif kind == 'peer':
            d.text(x, y + 16, f'{name} {multiple(v)}', 'peer', 10, 'middle')
        else:
            beside = any(0 <= axis.x(w) - x < 36 for k, _, w in marks if k != kind)
            d.text(x + (-8 if beside else 8), y + 4, multiple(v), 'pthread', 10,
                   'end' if beside else 'start')


def panel(d, axis, title, rows, peers, bottom):
    d.text(axis.left + PANEL / 2, 42, title, 'dim', 12, 'middle')
    d.text(axis.left - 8, 42, 'gort', 'gort', 12, 'end', 'bold')
    for v in axis.ticks():
        d.line(axis.x(v), TOP - 12, axis.x(v), bottom)
        d.text(axis.x(v), bottom + 14, 'gort = 1' if v == 1 else f'{v:g}', 'dim', 10, 'middle')
    d.line(axis.x(1), TOP - 12, axis.x(1), bottom, 'gort', 2)
    for i, (figure, _) in enumerate(LINES):
        if figure in rows:
            row_of(d, axis, TOP + 10 + i * ROW, rows[figure], peers)


def legend(d, x):
    d.line(x, 13, x + 14, 13, 'gort', 3)
    d.text(x + 20, 17, 'gort', 'gort', 12, weight='bold')
    for dx, kind, label in ((70, 'go', 'Go'), (120, 'pthread', 'pthreads'),
                            (208, 'peer', 'the best of the peers')):
        d.mark(x + dx, 13, kind)
        d.text(x + dx + 10, 17, label, kind)
    d.text(x + 374, 17, 'as multiples of gort; left of the line: ahead of it', 'dim')


def chart(rows, peers, dark=False):
    d = Drawing(DARK if dark else LIGHT)
    at = {ps: {r['name']: r for r in rows if r['ps'] == ps} for ps in (1, 2)}
    bottom = TOP + len(LINES) * ROW
    legend(d, 16)
    for i, (_, label) in enumerate(LINES):
        d.text(LABEL - 8, TOP + 14 + i * ROW, label, anchor='end')
    for i, (ps, title) in enumerate(((1, 'one processor'), (2, 'two processors'))):
        values = [v for f, _ in LINES if f in at[ps] for _, _, v in marks_of(at[ps][f], peers)]
        axis = Axis(values, LABEL + VALUE + i * (PANEL + VALUE + GAP))
        panel(d, axis, title, at[ps], peers, bottom)
    return d.svg(LABEL + 2 * (PANEL + VALUE) + GAP + 30, bottom + 26)
