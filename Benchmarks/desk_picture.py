#!/usr/bin/env python3
"""Draws what desk.py measured, as an SVG for the README.

    python3 Benchmarks/desk_picture.py RESULT.json docs/desk.svg
"""
import json
import statistics
import sys
from html import escape

WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 960, 196, 250, 112, 58, 17
STYLE = """<style>
.back { fill: #ffffff } .ink { fill: #1f2328 } .dim { fill: #59636e } .line { stroke: #d1d9e0 }
.before { fill: #8c959f } .memory { fill: #0072b2 } .files { fill: #56b4e9 } .own { fill: #d55e00 }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117 } .ink { fill: #e6edf3 } .dim { fill: #9198a1 } .line { stroke: #3d444d }
.before { fill: #6e7681 } .memory { fill: #2f81c7 } .files { fill: #a5d6ff } .own { fill: #ff9b57 }
}
</style>"""
LEGEND = [("before", "plain"), ("memory", "idle with Dormouse: private memory"),
          ("files", "pages of files, which the kernel can drop"), ("own", "Dormouse's own processes")]


def size(megabytes):
    return f"{megabytes / 1024:.1f} GB" if megabytes >= 1024 else f"{megabytes:.0f} MB"


def text(x, y, words, size=13, kind="ink", weight="normal", anchor="start"):
    return (f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" '
            f'text-anchor="{anchor}">{escape(words)}</text>')


def bar(kind, x, y, width):
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{BAR}"/>'


def rows(result):
    """Label, remark, memory before, its parts after, and the time to answer."""
    after, found = result["after"], []
    for kind in ("agent sessions", "MCP servers", "language servers", "Jupyter kernels"):
        files, own = after["files"][kind], after["own"].get(kind, 0)
        found.append((f"{result['counts'][kind]} {kind}", note(result, kind),
                      result["before"]["programs"][kind],
                      (after["programs"][kind] - files, files, own), answer(result, kind)))
    sums = (f"all {sum(result['counts'].values())}", "", sum(row[2] for row in found),
            tuple(sum(parts) for parts in zip(*(row[3] for row in found))), ("", ""))
    return [*found, sums]


def note(result, kind):
    awake = sum(row["kind"] == kind and not slept(result, row) for row in result["first"])
    words = ["stand-ins: node programs"] if kind == "agent sessions" else []
    return ", ".join(words + [f"{awake} didn't sleep"] * bool(awake))


def slept(result, row):
    return row["program"] not in result["awake after the limit"]


def answer(result, kind):
    def median(rows, way):
        return statistics.median(value for row in rows if row["kind"] == kind for value in row[way])

    first = median([row for row in result["first"] if slept(result, row)], "asleep")
    return (f"{median(result['times'], 'awake'):.0f} → {first:.0f} ms",
            f"later {median(result['times'], 'asleep'):.0f} ms")


def draw(result):
    found = rows(result)
    height = TOP + ROW * len(found) + 34
    scale = (WIDTH - LEFT - RIGHT) / max(row[2] for row in found)
    before, after = found[-1][2], sum(found[-1][3])
    title = f"A desk in memory: {size(before)} plain, {size(after)} idle with Dormouse"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
             f'height="{height}" role="img" font-family="system-ui, Helvetica, Arial, sans-serif">',
             f"<title>{escape(title)}</title>",
             "<desc>" + escape("; ".join(
                 f"{label}: {size(plain)} before, {size(sum(asleep))} after" for label, _, plain, asleep, _ in found))
             + "</desc>", STYLE, '<rect class="back" width="100%" height="100%" rx="6"/>',
             text(24, 34, title, 17, weight="bold")]
    x = 24
    for kind, words in LEGEND:
        parts += [f'<rect class="{kind}" x="{x}" y="49" width="11" height="11" rx="2"/>',
                  text(x + 17, 59, words, 12, "dim")]
        x += 40 + round(6.2 * len(words))
    parts += [text(WIDTH - 24, TOP - 14, "answer: awake → first wake", 12, "dim", anchor="end"),
              text(LEFT, TOP - 14, "memory (sum of PSS)", 12, "dim")]
    for number, (label, note, plain, asleep, passed) in enumerate(found):
        y = TOP + ROW * number
        if number == len(found) - 1:
            parts.append(f'<line class="line" x1="24" y1="{y - 8}" x2="{WIDTH - 24}" y2="{y - 8}"/>')
        parts += [text(24, y + (15 if note else 22), label, 14, weight="bold"), bar("before", LEFT, y, plain * scale),
                  text(LEFT + plain * scale + 8, y + 13, size(plain))]
        if note:
            parts.append(text(24, y + 33, note, 12, "dim"))
        x = LEFT
        for kind, part in zip(("memory", "files", "own"), asleep):
            parts.append(bar(kind, x, y + BAR + 3, part * scale))
            x += part * scale
        parts += [text(x + 8, y + BAR + 16, size(sum(asleep))),
                  text(WIDTH - 24, y + 14, passed[0], 14, anchor="end"),
                  text(WIDTH - 24, y + 33, passed[1], 12, "dim", anchor="end")]
    parts.append(text(24, height - 16, footer(result), 12, "dim"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def footer(result):
    return (f"Images on disk: {size(sum(result['images'].values()))}. Times are medians. Benchmarks/desk.py, "
            f"{result['date']}; 2 cores, load {result['load'][-1]:.1f}.")


if __name__ == "__main__":
    with open(sys.argv[1]) as source, open(sys.argv[2], "w") as target:
        target.write(draw(json.load(source)))
