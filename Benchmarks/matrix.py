#!/usr/bin/env python3
"""`dormouse bench` over programs and sizes. See README.md here."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from bench import BINARY, ROOT, free_port, machine
from talk import Redis

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(ROOT, "Tests", "Fixtures")
# The arguments with which the programs come near a size; the table shows the measured sizes. An
# interpreter alone is larger than the smallest sizes.
PYTHON = {8: 0, 16: 5, 64: 42, 256: 190}
NODE = {16: 0, 64: 38, 256: 190}
REDIS = {2: 2000, 8: 30_000, 16: 80_000, 64: 380_000, 256: 1_600_000}


class Case:
    def __init__(self, name, size, command, *asking):
        self.name, self.size, self.command, self.asking = name, size, command, asking


def interpreter(name, program, fixture, sizes, wanted, path, what):
    for size in wanted:
        if size in sizes:
            port = free_port()
            yield Case(f"{name}, {what}", size, [
                program, os.path.join(FIXTURES, fixture), "--port", str(port), "--megabytes",
                str(sizes[size])], "--request", f"http://127.0.0.1:{port}{path}")


def blob(directory, wanted, path, what):
    program = os.path.join(directory, "blob")
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, os.path.join(HERE, "blob.c")], check=True)
    for size in wanted:
        port = free_port()
        yield Case(f"C, random bytes, {what}", size, [program, str(port), str(size)],
                   "--request", f"http://127.0.0.1:{port}{path}")


def redis(directory, wanted):
    """With its data in a file, so that a relaunch loads it."""
    for size in wanted:
        place = os.path.join(directory, f"redis-{size}")
        os.mkdir(place)
        port = free_port()
        command = [shutil.which("redis-server"), "--port", str(port), "--bind", "127.0.0.1",
                   "--dir", place, "--save", "", "--enable-debug-command", "yes"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        line = Redis(port)
        line.command("DEBUG", "POPULATE", str(REDIS[size]), "key", "60")
        line.command("SAVE")
        line.close()
        server.terminate()
        server.wait()
        yield Case("redis, GET", size, command, "--request-command",
                   f"redis-cli -e -p {port} GET key:1")


def cases(directory, wanted, everything):
    python = sys.executable
    yield from interpreter("python", python, "http_state.py", PYTHON, wanted, "/count", "one request")
    node = shutil.which("node")
    if node:
        yield from interpreter("node", node, "http_state.js", NODE, wanted, "/count", "one request")
    if shutil.which("redis-server") and shutil.which("redis-cli"):
        yield from redis(directory, [size for size in wanted if size in REDIS])
    yield from blob(directory, wanted, "/", "one request")
    some = [size for size in wanted if size in everything]
    yield from interpreter("python", python, "http_state.py", PYTHON, some, "/digest", "all touched")
    yield from blob(directory, some, "/all", "all touched")


def measure(case, rounds, directory, level):
    out = subprocess.run(
        [BINARY, "bench", "--json", "--rounds", str(rounds), "--level", str(level),
         "--state-directory", directory, *case.asking, "--", *case.command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not out.stdout:
        raise RuntimeError(out.stderr.strip())
    return json.loads(out.stdout)


def middle(values):
    values = sorted(values)
    return values[len(values) // 2] if values else None


def short(value):
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def row(case, result):
    mechanisms = {mechanism["mechanism"]: mechanism for mechanism in result["mechanisms"]}
    sleeps = result["hibernations"]

    def cell(name):
        figures = mechanisms[name].get("statistics")
        return f"{short(figures['median'])} ({short(figures['minimum'])}–{short(figures['p95'])})" \
            if figures else "–"

    def median(name):
        return (mechanisms[name].get("statistics") or {}).get("median")

    def of(name):
        return middle([sleep[name] for sleep in sleeps]) or 0

    resume, relaunch = median("cached"), median("relaunch")
    times = f"{relaunch / resume:.1f}" if resume and relaunch else "–"
    took = of("milliseconds")
    speed = f"{of('movedBytes') / (1 << 20) / took * 1000:.0f}" if took else "–"
    cells = [case.name, f"{of('anonymousBefore') / (1 << 20):.1f}"]
    cells += [cell(name) for name in (
        "signal", "freezer", "cached", "dropped", "lazy", "swap", "relaunch")]
    cells += [times, f"{took:.0f}", speed, f"{of('imageBytes') / (1 << 20):.1f}",
              f"{of('anonymousAfter') / 1024:.0f}"]
    return "| " + " | ".join(cells) + " |"


HEADER = """| program | MB | SIGCONT | thaw | eager, cached | eager, from disk | lazy restore | swap | relaunch \
| relaunch ÷ resume | hibernating | MB/s | image MB | left KB |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=numbers, default=[2, 8, 16, 64, 256], help="MB")
    parser.add_argument("--everything", type=numbers, default=[16, 64],
                        help="sizes at which a request that touches all is measured too")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600, help="no new program after that")
    parser.add_argument("--output", help="default: Benchmarks/results/DATE-matrix.md; - prints it")
    options = parser.parse_args()
    start, lines, result, loads = time.monotonic(), [], None, []
    place = os.environ.get("TMPDIR", "/var/tmp")  # on a disk
    with tempfile.TemporaryDirectory(prefix="dormouse-matrix-", dir=place) as directory:
        for case in cases(directory, options.sizes, options.everything):
            if time.monotonic() - start > options.seconds:
                lines.append(f"\n{case.name} at {case.size} MB and what follows: out of time.")
                break
            print(f"{time.monotonic() - start:4.0f} s  {case.name}, {case.size} MB",
                  file=sys.stderr, flush=True)
            rounds = max(3, options.rounds // (2 if case.size > 100 else 1))
            try:
                result = measure(case, rounds, directory, options.level)
                lines.append(row(case, result))
                loads += [result["machine"]["loadBefore"], result["machine"]["loadAfter"]]
            except RuntimeError as error:
                lines.append(f"| {case.name} | {case.size} | {error} |" + " |" * 10)
    command = " ".join(["python3 Benchmarks/matrix.py", *sys.argv[1:]])
    swap = ", ".join((result or {}).get("machine", {}).get("swap", [])) or "none"
    text = "\n".join([
        f"# `dormouse bench` over programs and sizes, {time.strftime('%Y-%m-%d')}\n",
        f"`{command}`\n", f"{machine()}, swap: {swap}; {time.monotonic() - start:.0f} s, in which the load "
        f"was {min(loads, default=0):.1f} to {max(loads, default=0):.1f}\n",
        "Times are ms, median (minimum–p95), from the order to the first byte of the response (for "
        "redis, until `redis-cli` has ended). MB: anonymous memory before; left KB: the same while "
        "hibernated.\n", HEADER, *lines, ""])
    output = options.output or os.path.join(
        HERE, "results", f"{time.strftime('%Y-%m-%d')}-matrix.md")
    if output == "-":
        return print(text)
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    with open(output, "w") as file:
        file.write(text)
    print(output)


main()
