#!/usr/bin/env python3
"""How do Jupyter kernels behind `dormouse wrap` behave for a notebook?

A JupyterLab server of its own, driven over REST and WebSocket as a browser does. Ten kernels with 300 MB each:
their memory awake and hibernated, the time to the next cell's first output, and whether all state is the same
as in a plain kernel that ran the same cells. Then the same kernels where only 1 GB of memory may be used
(a memory cgroup), and the checks of notebook_checks.py. See README.md here.
"""
import argparse
import os
import random
import sys
import time
from importlib.metadata import version

from bench import figures, machine, proportional, tree
from jupyter import Kernel, Server
from memory_limit import MemoryLimit
from notebook_checks import all_checks

# Prices with two decimals compress to about a third; the second half doesn't compress.
STATE = """
import collections, hashlib, itertools, numpy as np
generator = np.random.default_rng({seed})
size = {megabytes} * 131072 // 2
prices = generator.normal(100, 15, size).round(2)
noise = generator.random(size)
frames = {{number: [number, str(number)] for number in range(20000)}}
def cells():
    for number in itertools.count({seed}):
        yield number
stream = cells()
file = open(__import__("os").path.expanduser({path!r}), "rb")
count = 0
print("made")
"""
# Touches little of the state.
NEXT = "count += 1; print(count, next(stream), file.read(4).hex(), float(prices[count]))"
# Touches all of it, and changes a part.
WHOLE = """
noise[:1000] += 1
print(hashlib.sha256(prices).hexdigest(), hashlib.sha256(noise).hexdigest(), sum(map(len, frames.values())),
      generator.integers(1 << 40))
"""


def megabytes(root):
    """PSS of a kernel with all its processes, and its wrapper with the guardian."""
    return sum(map(proportional, tree(root))) / 1024


class Table:
    def __init__(self):
        self.rows = []

    def row(self, name, value):
        self.rows.append((name, value))

    def print(self, head):
        print(f"\n| {head} | |\n|---|---:|")
        for name, value in self.rows:
            print(f"| {name} | {value} |", flush=True)


def fill(server, kernel, seed, megabytes):
    path = server.at(f"work/data-{seed}")
    with open(path, "wb") as file:
        file.write(random.Random(seed).randbytes(1 << 16))
    cell = kernel.run(STATE.format(seed=seed, megabytes=megabytes, path=path))
    assert cell.text == "made\n", (cell.text, cell.error)


def measure(options):
    server, table = Server(), Table()
    times = {name: [] for name in ("awake", "hibernated", "awake, all of the state",
                                   "hibernated, all of the state")}
    try:
        kernels = [server.start("wrapped") for _ in range(options.kernels)]
        plain, bare = server.start("plain"), server.start("plain")
        table.row("a kernel without state, awake", f"{megabytes(bare.pid):.1f} MB")
        bare.shutdown()
        awake, changed, number = [], 0, 0
        for seed, kernel in enumerate(kernels):
            fill(server, kernel, seed, options.megabytes)
            awake.append(megabytes(kernel.wrapper))
        for kernel in kernels:
            kernel.wait_until_asleep()
        asleep = [megabytes(kernel.wrapper) for kernel in kernels]
        table.row(f"{options.kernels} kernels with {options.megabytes} MB each, awake", f"{sum(awake):.0f} MB")
        table.row("the same, hibernated", f"{sum(asleep):.1f} MB")
        table.row("one of them (kernel, wrapper and guardian), awake", f"{figures(awake)} MB")
        table.row("the same, hibernated", f"{figures(asleep)} MB")
        table.row("images on disk, all", f"{server.images() / 1048576:.0f} MB")
        table.row("the server itself", f"{megabytes(server.process.pid) - sum(asleep) - megabytes(plain.pid):.0f} MB")
        for seed, kernel in enumerate(kernels):
            # The plain kernel becomes this one's twin.
            fill(server, plain, seed, options.megabytes)
            for round in range(options.rounds):
                for kind, code in (("", NEXT), (", all of the state", WHOLE)):
                    kernel.wait_until_asleep()
                    for state in ("hibernated", "awake"):
                        cell, twin = kernel.run(code), plain.run(code)
                        times[state + kind].append(cell.first)
                        number += 1
                        changed += cell.text != twin.text or not cell.text
            kernel.wait_until_asleep()
        for name, values in times.items():
            table.row(f"ms to a cell's first output: {name}", figures(values))
        table.row("cells whose output differs from a plain kernel's", f"{changed} of {number}")
        restarts = server.words().count("restarting kernel")
        table.row("kernels that the server restarted", f"{restarts} of {options.kernels}")
        lost = len(server.kernels()) - options.kernels - 1
    finally:
        server.close()
    table.print(f"{options.kernels} kernels, {options.megabytes} MB each; load {os.getloadavg()[0]:.1f}")
    return changed or restarts or lost


def under_limit(options, kind):
    """How many kernels keep their state where memory is limited."""
    limit = MemoryLimit(options.limit)
    if not limit.exists:
        print(f"\nno memory cgroup can be made here: the limit of {options.limit} MB isn't tried")
        return 0
    server, kept = Server(prepare=limit.enter), 0
    try:
        kernels = []
        for _ in range(options.kernels):
            kernels.append(server.start(kind))
        if kind == "wrapped":
            for kernel in kernels:
                kernel.wait_until_asleep()
        filled = []
        for seed, kernel in enumerate(kernels):
            if attempt(lambda: fill(server, kernel, seed, options.megabytes)):
                filled.append(kernel)
                if kind == "wrapped":
                    kernel.wait_until_asleep()
        for kernel in filled:
            # The kernel's own process, not another one that the server has started in its place.
            cell = attempt(lambda: kernel.run("import os; print(count, len(noise), os.getpid())", limit=20))
            kept += bool(cell) and cell.text == f"0 {options.megabytes * 65536} {kernel.pid}\n"
            if kind == "wrapped":
                kernel.wait_until_asleep()
        print(f"| {kind} | {kept} of {options.kernels} | {limit.peak():.0f} MB | {limit.kills()} |", flush=True)
    finally:
        server.close()
        limit.remove()
    return kind == "wrapped" and kept != options.kernels


def attempt(action):
    """nil: the kernel has ended, or doesn't answer."""
    try:
        return action() or True
    except Exception as error:  # noqa: BLE001: whatever is the reason, its state is lost
        print(f"  {type(error).__name__} {str(error)[:100]}", file=sys.stderr)
        return None


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kernels", type=int, default=10)
    options.add_argument("--megabytes", type=int, default=300, help="state of each")
    options.add_argument("--rounds", type=int, default=2, help="sleeps of each kernel and kind of cell")
    options.add_argument("--limit", type=int, default=1024, help="megabytes in the memory cgroup")
    options.add_argument("--parts", nargs="+", default=["memory", "limit", "checks"])
    options.add_argument("--checks", nargs="+", default=[], help="only these")
    options = options.parse_args()
    print(machine())
    print(", ".join(f"{name} {version(name)}" for name in (
        "jupyterlab", "jupyter_server", "jupyter_client", "ipykernel", "ipython", "pyzmq", "numpy")),
        "on python", sys.version.split()[0], flush=True)
    failures = 0
    if "memory" in options.parts:
        failures += measure(options)
    if "limit" in options.parts:
        print(f"\n| {options.kernels} kernels of {options.megabytes} MB in a cgroup of {options.limit} MB "
              "| kept their state | peak | killed by the kernel |\n|---|---:|---:|---:|")
        failures += under_limit(options, "wrapped") + under_limit(options, "plain")
    if "checks" in options.parts:
        failures += all_checks(options.checks)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
