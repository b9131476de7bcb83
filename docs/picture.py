#!/usr/bin/env python3
"""Draws the picture of the README: goroutines that wait, queues, processors, threads.

    docs/picture.py [DIR]

Writes picture.svg and picture-dark.svg there, or beside itself. tests/script/picture.sh compares
them with what is checked in.
"""
import os
import sys

LIGHT = {'ink': '#1f2328', 'dim': '#59636e', 'frame': '#d0d7de', 'fill': '#f6f8fa',
         'wait': '#9aa4af', 'ready': '#0a6ebd', 'run': '#0a7d33', 'arrow': '#59636e'}
DARK = {'ink': '#e6edf3', 'dim': '#9198a1', 'frame': '#3d444d', 'fill': '#151b23',
        'wait': '#656c76', 'ready': '#58a6ff', 'run': '#3fb950', 'arrow': '#9198a1'}
WIDTH, HEIGHT = 860, 326
ROWS = (92, 182)  # the middles of the two processors


class Picture:
    def __init__(self, colours):
        self.c, self.out = colours, []

    def text(self, x, y, s, colour='dim', size=12, anchor='middle', weight='normal'):
        self.out.append(f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" '
                        f'text-anchor="{anchor}" fill="{self.c[colour]}">{s}</text>')

    def box(self, x, y, w, h, radius=8):
        self.out.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{radius}" '
                        f'fill="{self.c["fill"]}" stroke="{self.c["frame"]}"/>')

    def dot(self, x, y, colour, r=5):
        self.out.append(f'<circle cx="{x}" cy="{y}" r="{r}" fill="{self.c[colour]}"/>')

    def arrow(self, path, dashed=False):
        dash = ' stroke-dasharray="4 3"' if dashed else ''
        self.out.append(f'<path d="{path}" fill="none" stroke="{self.c["arrow"]}" '
                        f'stroke-width="1.5" marker-end="url(#tip)"{dash}/>')

    def svg(self):
        tip = (f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
               f'markerHeight="7" orient="auto"><path d="M0 0l8 4-8 4z" '
               f'fill="{self.c["arrow"]}"/></marker></defs>')
        body = '\n'.join([tip, *self.out])
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
                f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, sans-serif" role="img" '
                f'aria-label="Goroutines, processors and threads">\n{body}\n</svg>\n')


def waiting(p):
    p.text(135, 24, 'goroutines that wait', 'ink', 14, weight='bold')
    p.box(20, 36, 230, 190)
    for row in range(8):
        for column in range(13):
            p.dot(39 + column * 16, 56 + row * 16, 'wait')
    p.text(135, 196, 'for a channel, lock, timer, socket')
    p.text(135, 214, 'a stack each, no thread')


def processor(p, number, y):
    """Its queue, the P with what runs, the thread that has it, the core."""
    p.box(350, y - 22, 130, 44)
    for i in range(5):
        p.dot(372 + i * 21, y, 'ready', 6)
    p.arrow(f'M484 {y}H524')
    p.box(528, y - 26, 76, 52)
    p.dot(566, y - 6, 'run', 9)
    p.text(566, y + 20, f'P{number}', 'ink')
    p.arrow(f'M608 {y}H648')
    p.box(652, y - 18, 82, 36)
    p.text(693, y + 4, 'thread', 'ink')
    p.arrow(f'M738 {y}H766')
    p.box(770, y - 18, 70, 36, 2)
    p.text(805, y + 4, 'core', 'ink')


def processors(p):
    for x, label in ((415, 'runnable'), (566, 'runs'), (693, 'a thread'), (805, 'a core')):
        p.text(x, 24, label, 'ink', 14, weight='bold')
    for number, y in enumerate(ROWS):
        processor(p, number, y)
    p.arrow(f'M415 {ROWS[0] + 26}V{ROWS[1] - 26}', dashed=True)
    p.text(424, sum(ROWS) / 2 + 4, 'an idle P steals half', anchor='start')


def around(p):
    p.arrow('M254 110C290 100 310 94 346 92')
    p.arrow('M254 150C290 165 310 176 346 181')
    p.text(300, 135, 'what it waits')
    p.text(300, 149, 'for comes')
    p.arrow('M566 212V244Q566 260 550 260H151Q135 260 135 232')
    p.text(380, 251, 'it waits again: two stacks are switched, no system call')
    p.box(20, 278, 330, 36)
    p.text(185, 300, 'poller: one epoll for all sockets', 'ink')
    p.box(370, 278, 470, 36)
    p.text(605, 300, 'monitor: preempts after 10 ms, takes the P of a thread that is stuck', 'ink')
    p.arrow('M70 274V232', dashed=True)
    p.arrow('M640 274V244C640 228 626 218 606 208', dashed=True)


def draw(colours):
    p = Picture(colours)
    for part in (waiting, processors, around):
        part(p)
    return p.svg()


def main():
    where = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for name, colours in (('picture.svg', LIGHT), ('picture-dark.svg', DARK)):
        with open(os.path.join(where, name), 'w') as f:
            f.write(draw(colours))


main()
