#!/usr/bin/env python3
"""Draws the first table of a result of peers.py, as an SVG.

    python3 Benchmarks/peers_picture.py Benchmarks/results/2026-11-27-peers.md docs/peers.svg
"""
import math
import sys
from html import escape

from desk_picture import text

WIDTH, LEFT, RIGHT, GAP, TOP, ROW = 960, 130, 24, 40, 118, 30
LEAST, MOST = 0.1, 2000
STYLE = """<style>
.back { fill: #ffffff } .ink { fill: #1f2328 } .dim { fill: #59636e } .line { stroke: #d1d9e0 }
.floor { fill: #8c959f } .memcr { fill: #d55e00 } .zram { fill: #56b4e9 } .own { fill: #0072b2 }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117 } .ink { fill: #e6edf3 } .dim { fill: #9198a1 } .line { stroke: #3d444d }
.floor { fill: #6e7681 } .memcr { fill: #ff9b57 } .zram { fill: #a5d6ff } .own { fill: #2f81c7 }
}
</style>"""
# The class of each way, its name, and its column among a panel's four.
WAYS = [("floor", "SIGCONT alone (nothing left RAM)", 0), ("memcr", "memcr, lz4", 3),
        ("zram", "zram (its compressed copy stays in RAM)", 2), ("own", "Dormouse, default", 1)]
PANELS = [("a light request", 1), ("a request that touches all objects", 5)]


def rows(lines):
    """The worker and its numbers, of the first table."""
    found = []
    for line in lines:
        if line.startswith("|"):
            found.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif found:
            break
    return [(cells[0], [float(cell) if number <= 8 else cell for number, cell in enumerate(cells) if number > 0])
            for cells in found[2:]]


def mark(kind, x, y):
    if kind == "own":
        return f'<rect class="own" x="{x - 6:.1f}" y="{y - 6:.1f}" width="12" height="12"/>'
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'


def draw(found, source):
    height = TOP + ROW * len(found) + 40
    panel = (WIDTH - LEFT - RIGHT - GAP) / len(PANELS)
    title = "From the order to wake until the first byte of the answer, ms (logarithmic)"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
             f'height="{height}" role="img" font-family="system-ui, Helvetica, Arial, sans-serif">',
             f"<title>{escape(title)}</title>", STYLE, '<rect class="back" width="100%" height="100%" rx="6"/>',
             text(24, 34, title, 17, weight="bold")]
    x = 24
    for kind, words, _ in reversed(WAYS):
        parts += [mark(kind, x + 6, 55), text(x + 18, 59, words, 12, "dim")]
        x += 42 + round(6.2 * len(words))
    for number, (name, first) in enumerate(PANELS):
        left = LEFT + number * (panel + GAP)

        def place(value):
            return left + panel * math.log(value / LEAST) / math.log(MOST / LEAST)

        parts.append(text(left, TOP - 32, name, 13, weight="bold"))
        for tick in (0.1, 1, 10, 100, 1000):
            parts += [f'<line class="line" x1="{place(tick):.1f}" y1="{TOP - 8}" x2="{place(tick):.1f}" y2="{height - 40}"/>',
                      text(place(tick), TOP - 13, f"{tick:g}", 11, "dim", anchor="middle")]
        for row, (worker, numbers) in enumerate(found):
            y = TOP + ROW * row + 10
            if number == 0:
                parts.append(text(24, y + 4, worker, 13))
            for kind, _, column in WAYS:
                parts.append(mark(kind, place(numbers[first - 1 + column]), y))
    parts.append(text(24, height - 14, f"Medians of peers.py, {source}", 12, "dim"))
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1]) as source:
        found = rows(source)
    with open(sys.argv[2], "w") as target:
        target.write(draw(found, sys.argv[1].split("/")[-1].removesuffix(".md")))
