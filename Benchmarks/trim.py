#!/usr/bin/env python3
"""Running workers whose unused memory leaves RAM (docs/trim.md), each beside an untouched twin. See README.md here.

    sudo python3 Benchmarks/trim.py memory [--minutes 10] [--output FILE.json]
    sudo python3 Benchmarks/trim.py latency [--rounds 9] [--hogs] [--user NAME]
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

from bench import BINARY, Daemon, as_user, free_port, machine, processor, proportional
from peers import megabytes, milliseconds, p95
from Peers import swap
from Peers.processor import Hogs
from Peers.programs import PROGRAMS
from Peers.trimmed import PagedOut, Trimmed, Untouched, device, major_faults, swapped
from Peers.ways import Dormouse, anonymous

BY_NAME = {program.name: program for program in PROGRAMS}
# The time between a trim and the next request, as in real use; an idle worker's page tables are cold by then.
PAUSE = 2.2
# Key, program, what uses it, seconds between requests (None: there are none), and whether each has its own connection.
USES = [
    ("python-timer", "python", "a timer each second", None, False),
    ("python", "python", "a light request each 5 s", 5, False),
    ("asyncio", "asyncio", "a ping each 20 s", 20, False),
    ("redis", "redis", "a light request each 5 s", 5, False),
    ("ruby", "ruby", "a timer each second, a light request each 5 s", 5, False),
    ("node", "node", "a timer each second, a health check each 10 s", 10, True),
    ("jvm", "jvm", "a timer each second, a health check each 10 s", 10, True),
    ("jvm-serial", "jvm-serial", "a timer each second, a health check each 10 s", 10, True),
    ("go", "go", "a timer each second, a health check each 10 s", 10, True),
]
TIMER = {"TIMER": "1"}


def size_of(program):
    """The second of its sizes: 40 to 80 MB."""
    return program.sizes[min(1, len(program.sizes) - 1)]


# MARK: memory

class Pair:
    """A trimmed worker and its twin, which get the same requests at the same times."""

    def __init__(self, key, name, use, every, is_new):
        self.key, self.program, self.use, self.every, self.is_new = key, BY_NAME[name], use, every, is_new
        self.ports = free_port(), free_port()
        self.environment = TIMER if "timer" in use else {}
        self.times = [], []
        self.samples = []

    def command(self, side):
        return self.program.command(size_of(self.program), self.ports[side])

    def configuration(self):
        return {"command": self.command(0), "environment": self.environment, "readiness": {"tcp": self.ports[0]}}

    def begin(self, daemon, user):
        while "pid" not in daemon.worker(self.key):
            time.sleep(0.05)
        self.twin = subprocess.Popen(as_user(user) + self.command(1), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, env={**os.environ, **self.environment},
                                     start_new_session=True)
        self.pids = daemon.worker(self.key)["pid"], self.twin.pid
        self.connections = [self.program.connect(port, size_of(self.program)) for port in self.ports]
        for connection in self.connections:
            connection.ask("all")
            for _ in range(20):
                connection.ask("light")
        self.sums = [connection.checksum() for connection in self.connections]
        self.before = anonymous(self.pids[0])  # The checksum has just read all of it.

    def ask(self, number):
        """One light request to each; they take turns at being first."""
        for side in ((0, 1), (1, 0))[number % 2]:
            start = time.perf_counter()
            if self.is_new:
                connection = self.program.connection(self.ports[side])
                connection.ask("light")
                connection.line.close()
            else:
                self.connections[side].ask("light")
            self.times[side].append((time.perf_counter() - start) * 1000)

    def sample(self, seconds):
        self.samples.append([round(seconds, 1), *[anonymous(pid) for pid in self.pids], swapped(self.pids[0]),
                             major_faults(self.pids[0])])

    def result(self, log):
        """The faults a minute are those since a minute after the first trim."""
        trims = re.findall(rf"(?<![\w-]){self.key}(?![\w-]): trimmed: (.*)", log)
        first = next((row[0] for row in self.samples if row[3] > 0), None)
        later = [row for row in self.samples if first is not None and row[0] >= first + 60]
        faults = (later[-1][4] - later[0][4]) / (later[-1][0] - later[0][0]) * 60 if len(later) > 1 else None
        # A health check may have closed the connection that was open from the beginning.
        after = [self.program.connect(port, size_of(self.program)).checksum() if self.is_new else connection.checksum()
                 for port, connection in zip(self.ports, self.connections)]
        return {"use": self.use, "before": self.before, "after": self.samples[-1][1],
                "twin": self.samples[-1][2], "swapped": self.samples[-1][3], "faults": faults, "trims": trims,
                "times": self.times, "equal": after == self.sums, "samples": self.samples}

    def end(self):
        if hasattr(self, "twin"):
            self.twin.kill()
            self.twin.wait()


def memory_rules(options):
    return {"background": {"suspend_after": "never"}, "hibernate": {"after": "never"},
            "trim": {"after": f"{options.after:g}s", "every": f"{options.every:g}s"}}


def watch(pairs, daemon, options):
    """The run itself. Returns seconds, the daemon's processor seconds, its RSS in MB, and the RAM in MB that the trimmed
    memory uses as a compressed copy or in the swap cache, for each sample."""
    costs, number, before = [], 0, swap.all_in_ram()
    start = time.monotonic()
    due = {pair.key: place * 0.3 + 1 for place, pair in enumerate(pairs)}
    sample = 0.0
    while (now := time.monotonic() - start) < options.minutes * 60:
        for pair in pairs:
            if pair.every and now >= due[pair.key]:
                due[pair.key] += pair.every
                number += 1
                pair.ask(number)
        if now >= sample:
            sample += options.sample
            for pair in pairs:
                pair.sample(now)
            pid = daemon.process.pid
            costs.append([round(now, 1), processor(pid), proportional(pid, "Rss") / 1024,
                          max(0, swap.all_in_ram() - before) / 1e6])
        time.sleep(0.02)
    return costs


def memory(options, wanted):
    pairs = [Pair(*use) for use in USES if BY_NAME[use[1]] in wanted]
    daemon = Daemon({"policy_overrides": memory_rules(options),
                     "workers": {pair.key: pair.configuration() for pair in pairs}}, user=options.user)
    try:
        for pair in pairs:
            pair.begin(daemon, options.user)
        costs = watch(pairs, daemon, options)
        with open(os.path.join(daemon.directory, "log")) as file:
            log = file.read()
        programs = {pair.key: pair.result(log) for pair in pairs}
    finally:
        for pair in pairs:
            pair.end()
        daemon.close()
    used = (costs[-1][1] - costs[0][1]) / (costs[-1][0] - costs[0][0])
    return {"minutes": options.minutes, "after": options.after, "every": options.every, "programs": programs,
            "swap in RAM": costs[-1][3],
            "daemon": {"processor": used, "rss": [costs[0][2], costs[-1][2]], "samples": costs}}


def memory_table(result):
    print("\n| worker | used by | MB before | after | twin | in swap | trims | faults a minute "
          "| light request, ms: median (p95) | twin | state |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|")
    for key, row in result["programs"].items():
        faults = "–" if row["faults"] is None else f"{row['faults']:.0f}"
        print(f"| {key} | {row['use']} | {row['before'] / 1e6:.1f} | {row['after'] / 1e6:.1f} | {row['twin'] / 1e6:.1f} "
              f"| {row['swapped'] / 1e6:.1f} | {len(row['trims'])} | {faults} | {later(row['times'][0])} "
              f"| {later(row['times'][1])} | {'equal' if row['equal'] else 'DIFFERENT'} |")
    before, after, twins = (sum(row[key] for row in result["programs"].values()) for key in ("before", "after", "twin"))
    cost = result["daemon"]
    print(f"| all | | {before / 1e6:.1f} | {after / 1e6:.1f} | {twins / 1e6:.1f} | | | | | | |\n")
    print(f"{result['minutes']:g} minutes; trim after {result['after']:g} s, every {result['every']:g} s. In swap and still in RAM "
          f"(compressed, or in the swap cache): {result['swap in RAM']:.1f} MB. Daemon: "
          f"{cost['processor']:.2%} of a core, RSS {cost['rss'][0]:.1f} MB at the beginning, {cost['rss'][1]:.1f} at the end.")
    return all(row["equal"] for row in result["programs"].values())


# MARK: latency

def make_peers(program, options):
    size = options.size or size_of(program)
    peers = [Untouched("untouched", program, size), Trimmed("trimmed", program, size),
             Dormouse("frozen and hibernated", program, size)]
    if options.pages_out:
        peers.append(PagedOut("paged out without Dormouse", program, size, None))
    for peer in peers:
        peer.user = options.user
        peer.results = {"first": [], "later": [], "all": [], "ram": [], "swap": [], "sleep": []}
    return [peer for peer in peers if not options.only or any(word in peer.name for word in options.only)]


def one_round(peers, number, kind, count):
    """All are put away; each has its first request, and then `count` light ones in turn."""
    turn = [peers[(place + number) % len(peers)] for place in range(len(peers))]
    figures = {peer: {} for peer in peers}
    for peer in turn:
        peer.prepare()
        start = time.perf_counter()
        peer.sleep()
        figures[peer]["sleep"] = (time.perf_counter() - start) * 1000
    time.sleep(PAUSE)
    for peer in turn:
        figures[peer]["ram"], figures[peer]["swap"] = peer.asleep()
    for peer in turn:
        start = time.perf_counter()
        peer.wake(kind)
        figures[peer]["first" if kind == "light" else "all"] = (time.perf_counter() - start) * 1000
        peer.connection.rest()
        peer.settle()
    for _ in range(count):
        for peer in turn:
            figures[peer].setdefault("later", []).append(peer.connection.ask("light"))
        time.sleep(0.005)
    return figures


def latency_of(program, options):
    peers = make_peers(program, options)
    started = []
    try:
        for peer in peers:
            started.append(peer)
            peer.launch()
            peer.sum = peer.connection.checksum()
            for _ in range(20):
                peer.connection.ask("light")
        size = max(anonymous(peer.pid) for peer in peers)
        warm_up = 1
        for number in range(warm_up + options.rounds + options.all_rounds):
            kind = "light" if number < warm_up + options.rounds else "all"
            for peer, figures in one_round(peers, number, kind, options.later if kind == "light" else 0).items():
                if number < warm_up:
                    continue
                for key, value in figures.items():
                    peer.results[key] += value if isinstance(value, list) else [value]
        for peer in peers:
            peer.is_equal = peer.connection.checksum() == peer.sum
    finally:
        for peer in started:
            with contextlib.suppress(OSError, RuntimeError, AttributeError, subprocess.SubprocessError):
                peer.end()
            peer.close()
    return {"size": size, "ways": {peer.name: {**peer.results, "equal": peer.is_equal} for peer in peers}}


def latency(options, wanted):
    print("\n| worker | way | first light request, ms | later ones | first request, all objects | to put away "
          "| MB in RAM | in swap or image | state |\n|---|---|---:|---:|---:|---:|---:|---:|---|", flush=True)
    programs = {}
    for program in wanted:
        found = programs[program.name] = latency_of(program, options)
        for place, (name, row) in enumerate(found["ways"].items()):
            head = f"{program.name}, {found['size'] / 1e6:.0f} MB" if place == 0 else ""
            print(f"| {head} | {name} | {later(row['first'])} | {later(row['later'])} | {milliseconds(row['all'])} "
                  f"| {milliseconds(row['sleep'])} | {megabytes(row['ram'])} | {megabytes(row['swap'])} "
                  f"| {'equal' if row['equal'] else 'DIFFERENT'} |", flush=True)
    print(f"\nMedians (p95) of {options.rounds} rounds, {options.all_rounds} for all objects, each {PAUSE:g} s after the worker "
          "was put away, with the ways in turns.")
    return {"rounds": options.rounds, "hogs": options.hogs, "programs": programs}


def later(values):
    """Median and p95, of times that may be short."""
    return f"{statistics.median(values):.2f} ({p95(values):.2f})" if values else "–"


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="DORMOUSE=FILE in the environment names the executable. Without swap, it needs root to make some.")
    parser.add_argument("mode", choices=("memory", "latency"))
    parser.add_argument("--program", nargs="+", choices=list(BY_NAME), default=[name for name in BY_NAME if name != "c"])
    parser.add_argument("--user", help="the daemon and the workers are this user's; the script is root's")
    parser.add_argument("--swap", choices=("zram", "file"), default="zram", help="what is made if no swap is on (zram)")
    parser.add_argument("--swap-megabytes", type=int, default=2048)
    parser.add_argument("--output", metavar="FILE", help="all numbers, as JSON")
    memory = parser.add_argument_group("memory")
    memory.add_argument("--minutes", type=float, default=10)
    memory.add_argument("--sample", type=float, default=5, help="seconds between two measurements (5)")
    memory.add_argument("--after", type=float, default=30, help="seconds until the first trim, as trim.after (30)")
    memory.add_argument("--every", type=float, default=120, help="as trim.every (120)")
    latency = parser.add_argument_group("latency")
    latency.add_argument("--rounds", type=int, default=9)
    latency.add_argument("--all-rounds", type=int, default=3, help="rounds whose request touches all objects (3)")
    latency.add_argument("--later", type=int, default=20, help="light requests after the first one (20)")
    latency.add_argument("--size", type=int, help="in objects, keys or MB: see Peers/programs.py")
    latency.add_argument("--only", nargs="+", metavar="WORD", help="ways whose name contains one of these words")
    latency.add_argument("--hogs", action="store_true", help="with a process on each processor that computes all the time")
    return parser.parse_args()


def installed(options):
    for name in options.program:
        program = BY_NAME[name]
        if program.is_there():
            yield program
        else:
            print(f"left out: {name}: {program.tool} is not installed")


def pages_out():
    """Says why another process can't move a worker's pages to swap."""
    try:
        if os.geteuid() != 0:
            raise swap.Unavailable("needs root")
        swap.MemoryGroup().close()
        return True
    except swap.Unavailable as error:
        print(f"left out: paged out without Dormouse: {error}")
        return False


def main():
    options = arguments()
    if not os.path.exists(BINARY):
        sys.exit(f"there is no {BINARY} yet; `make build` builds it, or DORMOUSE names it")
    if options.user and (os.geteuid() != 0 or not shutil.which("setpriv")):
        sys.exit("--user needs root, and setpriv")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that swap is switched off
    with contextlib.ExitStack() as stack:
        try:
            words = stack.enter_context(device(options.swap, options.swap_megabytes))
        except (OSError, swap.Unavailable) as error:
            sys.exit(f"no swap is on, and none can be made: {error}")
        about = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "swap": words,
                 "user": options.user or ("root" if os.geteuid() == 0 else "an ordinary user")}
        print(f"{about['machine']}; swap: {words}; the daemon's user: {about['user']}", flush=True)
        wanted = list(installed(options))
        for program in wanted:
            stack.callback(program.remove)
        if options.mode == "memory":
            result = memory(options, wanted)
            is_whole = memory_table(result)
        else:
            options.pages_out = pages_out()
            stack.enter_context(Hogs(options.hogs))
            result = latency(options, wanted)
            is_whole = all(row["equal"] for found in result["programs"].values() for row in found["ways"].values())
        result = {**about, "load at the end": os.getloadavg()[0], "mode": options.mode, **result}
        if options.output:
            with open(options.output, "w") as file:
                json.dump(result, file)
    sys.exit(0 if is_whole else 1)


if __name__ == "__main__":
    main()
