# The picture of the README is the one that docs/picture.py draws; bench/report draws the chart and
# fills what is between the markers of README.md and PERFORMANCE.md, from a run of make bench, here
# of made-up figures: each mark stands where its figure says, a peer that is ahead left of the line.
set -eu
. tests/lib/deps.sh
use_deps
if why=$(lack python); then echo "skipped: $why"; exit 77; fi
export PYTHONDONTWRITEBYTECODE=1
docs/picture.py "$WORK"
for f in picture.svg picture-dark.svg; do
    cmp "$WORK/$f" "docs/$f" || { echo "^ docs/picture.py draws another one"; exit 1; }
done
mkdir -p "$WORK/docs"
cp README.md "$WORK/"
cp docs/PERFORMANCE.md "$WORK/docs/"
python3 - "$WORK" <<'END'
import json
import subprocess
import sys
import xml.dom.minidom

work = sys.argv[1]
FIGURES = {'gort': 10, 'go': 40, 'pthread': 2000, 'tokio': 5, 'libdill': 20}
row = {'name': 'spawn', 'unit': 'ns/op', 'targets': {}, 'missed': [], 'median': FIGURES,
       'ratios': {w: v / 10 for w, v in FIGURES.items() if w != 'gort'},
       'samples': {w: [v] for w, v in FIGURES.items()}}
results = {'runs': 1, 'when': 0, 'load': 7.5, 'go': 'go0.0', 'cpus': 2, 'complaints': [],
           'rows': [dict(row, ps=1, targets={'go': 6}, missed=['go']), dict(row, ps=2)],
           'peers': {'libdill': 'abcdef of 1970-01-01', 'tokio': '9.9'}}


def want(condition, what):
    if not condition:
        sys.exit(what)


with open(f'{work}/results.json', 'w') as f:
    json.dump(results, f)
open(f'{work}/results.svg', 'w').close()
subprocess.run(['bench/report', work, work], check=True)
page, readme = (open(f'{work}/{p}').read() for p in ('docs/PERFORMANCE.md', 'README.md'))
for words in (page, readme):
    text = ('Behind, with the best of the others as a multiple of gort: start and end one (1 P: '
            'Tokio 0.50, 2 Ps: Tokio 0.50).')
    want(text in ' '.join(words.split()), f'it does not say: {text}')
want('asks for 1 ratios. Below what it asks, in this run: start and end one (1 P: 4 of 6).'
     in ' '.join(page.split()), 'it does not say which target was missed')
for text in ('| ns | 1 | 10 | 40 | 2,000 | 20 | **5** |', 'libdill abcdef of 1970-01-01, Tokio 9.9',
             'load 7.5'):
    want(text in page, f'PERFORMANCE.md has no "{text}"')
want('load 7.5' in readme and 'docs/chart-dark.svg' in readme, 'README.md was not filled')
for name in ('chart.svg', 'chart-dark.svg'):
    drawn = xml.dom.minidom.parse(f'{work}/docs/{name}')
    lines = [e for e in drawn.getElementsByTagName('line') if e.getAttribute('stroke-width') == '2']
    want(len(lines) == 2, f'{name}: a line at 1 for each number of Ps')
    one = float(lines[0].getAttribute('x1'))
    marks = [float(c.getAttribute('cx')) for c in drawn.getElementsByTagName('circle')]
    marks = [x for x in marks if x > one - 1][:1]
    peers = [e.getAttribute('d') for e in drawn.getElementsByTagName('path')]
    at = [float(d[1:].split()[0]) for d in peers]
    want(marks and marks[0] > one, f'{name}: Go is slower, right of the line')
    want(any(x < one for x in at[1:]), f'{name}: Tokio is ahead, left of the line')
    said = [t.firstChild.data for t in drawn.getElementsByTagName('text')]
    want('Tokio 0.50' in said and '4.0' in said and '200' in said, f'{name} says {said}')
    want(not any('libdill' in t for t in said), f'{name} names a peer that is not the best')
END
