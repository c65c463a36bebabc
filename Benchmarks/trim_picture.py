#!/usr/bin/env python3
"""Draws what `trim.py memory` measured, as an SVG: the memory of all workers over time, and of each at the end.

    python3 Benchmarks/trim_picture.py RESULT.json docs/trim.svg
"""
import json
import sys
from html import escape

from desk_picture import size, text

WIDTH, TOP, ROW = 960, 104, 34
LEFT, RIGHT = 78, 520  # of the curves
NAMES, BARS, END = 560, 668, 850
STYLE = """<style>
.back { fill: #ffffff } .ink { fill: #1f2328 } .dim { fill: #59636e } .line { stroke: #d1d9e0 }
.twin { fill: #8c959f } .trimmed { fill: #0072b2 } .copies { fill: #56b4e9 } .copies-curve { stroke: #56b4e9 }
.twin-curve { stroke: #8c959f } .trimmed-curve { stroke: #0072b2 } .curve { fill: none; stroke-width: 2.5 }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117 } .ink { fill: #e6edf3 } .dim { fill: #9198a1 } .line { stroke: #3d444d }
.copies { fill: #a5d6ff } .copies-curve { stroke: #a5d6ff } .twin { fill: #6e7681 } .trimmed { fill: #2f81c7 } .twin-curve { stroke: #6e7681 } .trimmed-curve { stroke: #2f81c7 }
}
</style>"""
LEGEND = [("twin", "untouched twins"), ("trimmed", "trimmed"), ("copies", "trimmed, with what is in swap and still in RAM")]


def sums(result):
    """Seconds, MB of all twins, MB of all trimmed workers, and with what their memory in swap uses, for each sample."""
    for rows in zip(result["daemon"]["samples"], *(row["samples"] for row in result["programs"].values())):
        twins, trimmed = (sum(row[column] for row in rows[1:]) / 1e6 for column in (2, 1))
        yield rows[1][0], twins, trimmed, trimmed + rows[0][3]


def curves(found, height):
    bottom, longest, most = height - 52, found[-1][0], max(max(row[1:]) for row in found) * 1.05
    step = next(step for step in (20, 50, 100, 200, 500, 1000, 5000) if most / step <= 6)

    def across(seconds):
        return LEFT + (RIGHT - LEFT) * seconds / longest

    def down(megabytes):
        return bottom - (bottom - TOP) * megabytes / most

    parts = []
    for tick in range(0, int(most) + 1, step):
        parts += [f'<line class="line" x1="{LEFT}" y1="{down(tick):.1f}" x2="{RIGHT}" y2="{down(tick):.1f}"/>',
                  text(LEFT - 8, down(tick) + 4, f"{tick} MB", 11, "dim", anchor="end")]
    minutes = max(1, round(longest / 60 / 5))
    for minute in range(0, int(longest / 60) + 1, minutes):
        parts.append(text(across(minute * 60), bottom + 16, f"{minute} min", 11, "dim", anchor="middle"))
    for kind, column in (("twin", 1), ("copies", 3), ("trimmed", 2)):
        points = " ".join(f"{across(row[0]):.1f},{down(row[column]):.1f}" for row in found)
        parts.append(f'<polyline class="curve {kind}-curve" points="{points}"/>')
    return parts


def bars(programs):
    scale = (END - BARS) / max(row["twin"] for row in programs.values())
    for number, (name, row) in enumerate(programs.items()):
        y = TOP + ROW * number
        yield text(NAMES, y + 15, name, 13, weight="bold")
        for place, kind in enumerate(("twin", "trimmed")):
            value = row["after" if kind == "trimmed" else "twin"]
            yield f'<rect class="{kind}" x="{BARS}" y="{y + 12 * place}" width="{value * scale:.1f}" height="10"/>'
        yield text(WIDTH - 24, y + 15, f"{row['twin'] / 1e6:.0f} → {row['after'] / 1e6:.1f} MB", 12, anchor="end")


def draw(result):
    programs, found = result["programs"], list(sums(result))
    height = TOP + ROW * max(len(programs), 6) + 40
    title = (f"{len(programs)} workers in use: {size(found[-1][1])} untouched, {size(found[-1][2])} trimmed "
             "while they run")
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
             f'height="{height}" role="img" font-family="system-ui, Helvetica, Arial, sans-serif">',
             f"<title>{escape(title)}</title>",
             "<desc>" + escape("; ".join(f"{name}, {row['use']}: {row['twin'] / 1e6:.0f} MB untouched, "
                                         f"{row['after'] / 1e6:.1f} trimmed" for name, row in programs.items()))
             + "</desc>", STYLE, '<rect class="back" width="100%" height="100%" rx="6"/>',
             text(24, 34, title, 17, weight="bold")]
    x = 24
    for kind, words in LEGEND if result["swap"] != "none" else LEGEND[:2]:
        parts += [f'<rect class="{kind}" x="{x}" y="49" width="11" height="11" rx="2"/>', text(x + 17, 59, words, 12, "dim")]
        x += 40 + round(6.2 * len(words))
    parts += [text(24, TOP - 16, "anonymous memory of all", 12, "dim"), text(NAMES, TOP - 16, "of each, at the end", 12, "dim"),
              *curves(found, height), *bars(programs)]
    mechanism = f"Swap: {result['swap']}" if result["swap"] != "none" else "Trims by userfaultfd"
    parts.append(text(24, height - 14, f"Timers of 1 s, requests each 5 to 20 s. {mechanism}. Benchmarks/trim.py, "
                      f"{result['date']}; load {result['load at the end']:.1f}.", 12, "dim"))
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1]) as source, open(sys.argv[2], "w") as target:
        target.write(draw(json.load(source)))
