"""The plot of bench/run: bars of ratios for each workload, and the curves, as one SVG."""
import math
from html import escape

LEFT, WIDTH, BAR, GAP = 190, 560, 9, 7
COLOURS = {1: '#1f77b4', 2: '#ff7f0e'}
CURVES = ['#1f77b4', '#ff7f0e', '#2ca02c', '#d62728', '#9467bd', '#8c564b']


def text(x, y, s, size=11, anchor='start', fill='#222'):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}">{escape(s)}</text>')


def line(x1, y1, x2, y2, stroke='#ddd', width=1):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{stroke}" stroke-width="{width}"/>')


def ratio_groups(rows, against):
    groups = {}
    for r in rows:
        named = not r['name'].startswith('scale_')
        if r['ratios'].get(against) and named and against in r['targets']:
            groups.setdefault(r['name'], []).append(r)
    return groups


def bars(rows, against, title, top):
    """A group of bars for each figure with a target; a dark tick where the target is."""
    groups = ratio_groups(rows, against)
    if not groups:
        return [], top
    most = max([max(r['ratios'][against], r['targets'][against])
                for g in groups.values() for r in g] + [2])
    low, high = math.log10(0.25), math.log10(most * 1.3)

    def x(v):
        return LEFT + (math.log10(max(v, 0.25)) - low) / (high - low) * WIDTH

    out = [text(10, top + 14, title, 14)]
    y = top + 30
    end = y + sum(len(g) * BAR + GAP for g in groups.values())
    for v in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        if v <= most * 1.3:
            out.append(line(x(v), y - 4, x(v), end, '#333' if v == 1 else '#ddd'))
            out.append(text(x(v), end + 11, f'{v:g}', 10, 'middle'))
    for name, group in groups.items():
        out.append(text(LEFT - 8, y + len(group) * BAR / 2 + 4, name, 11, 'end'))
        for r in sorted(group, key=lambda r: r['ps']):
            value, want = r['ratios'][against], r['targets'][against]
            a, b = sorted((x(1), x(value)))
            out.append(f'<rect x="{a:.1f}" y="{y}" width="{max(b - a, 1):.1f}" height="{BAR - 1}" '
                       f'fill="{COLOURS.get(r["ps"], "#777")}"/>')
            colour = '#c00' if value < want else '#060'
            out.append(line(x(want), y - 1, x(want), y + BAR - 1, colour, 2))
            out.append(text(max(b, x(want)) + 4, y + BAR - 1, f'{value:.2f}', 9))
            y += BAR
        y += GAP
    return out, end + 30


def curve_panel(curves, prefix, label, top):
    """Cost per operation over x, both logarithmic: flat is right."""
    some = {k: v for k, v in curves.items() if k[0].startswith(prefix)}
    if not some:
        return [], top
    xs = [x for v in some.values() for x, _ in v]
    ys = [y for v in some.values() for _, y in v]
    y0, y1 = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)) + 1e-9)
    x1, height = math.log10(max(xs)) or 1, 200

    def at(x, y):
        return (LEFT + math.log10(x) / x1 * WIDTH,
                top + 30 + (y1 - math.log10(y)) / max(y1 - y0, 1) * height)

    out = [text(10, top + 14, f'ns per operation over {label}', 14)]
    for e in range(y0, y1 + 1):
        y = at(1, 10 ** e)[1]
        out += [line(LEFT, y, LEFT + WIDTH, y), text(LEFT - 8, y + 4, f'{10 ** e:g}', 10, 'end')]
    for x in sorted(set(xs)):
        out.append(text(at(x, 10 ** y0)[0], top + height + 44, f'{x:g}', 10, 'middle'))
    for i, ((curve, ps), points) in enumerate(sorted(some.items())):
        colour = CURVES[i % len(CURVES)]
        path = ' '.join(f'{a:.1f},{b:.1f}' for a, b in (at(x, y) for x, y in points))
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        what = curve.rsplit('_', 1)[1] + (f', {ps} P' if prefix == 'scale_g' else '')
        out.append(text(LEFT + WIDTH + 8, top + 40 + i * 14, what, 11, fill=colour))
    return out, top + height + 60


def draw(rows, curves):
    body, top = [], 10
    for make in (
            lambda t: bars(rows, 'go',
                           'gort over Go, larger is better; blue: 1 P, orange: 2 Ps; '
                           'tick: target', t),
            lambda t: bars(rows, 'floor', 'gort over the bare epoll loop', t),
            lambda t: curve_panel(curves, 'scale_g', 'the number of goroutines', t),
            lambda t: curve_panel(curves, 'scale_p', 'the number of Ps', t)):
        part, top = make(top)
        body += part
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 130}" '
            f'height="{top + 10}" '
            f'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>\n'
            + '\n'.join(body) + '\n</svg>\n')
