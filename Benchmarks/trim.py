#!/usr/bin/env python3
"""Running workers whose unused memory leaves RAM (docs/trim.md), each beside an untouched twin. See README.md here.

    sudo python3 Benchmarks/trim.py memory [--minutes 10] [--mechanism userfaultfd] [--user NAME]
    sudo python3 Benchmarks/trim.py latency [--rounds 9] [--all-rounds 3] [--hogs] [--launches 12]
    sudo python3 Benchmarks/trim.py objects [--megabytes 15,44,123] [--memcr FILE]
    sudo python3 Benchmarks/trim.py many [--workers 1000] [--wakes 200]
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

from bench import BINARY, Daemon, machine
from peers import megabytes, milliseconds, p95
from thousand import percentile
from Peers import swap
from Peers.pairs import BY_NAME, USES, Pair, journaled_trims, now, size_of
from Peers.processor import Hogs
from Peers.trimmed import PagedOutCrowd, TrimmedCrowd, daemon_cost, device, is_wanted, rules, ways
from Peers.ways import anonymous

# The time between a trim and the next request, as in real use; an idle worker's page tables are cold by then.
PAUSE = 2.2
# The bytes of python's worker without objects, and those of each object.
EMPTY, OBJECT = 11.2e6, 298
FAILURES = (OSError, RuntimeError, KeyError, swap.Unavailable, subprocess.SubprocessError)


def short(values):
    """Median and p95, of times that may be short."""
    return f"{statistics.median(values):.2f} ({p95(values):.2f})" if values else "–"


def ratio(values, others):
    """How many times as long as the others: the median, and the p95."""
    if not values or not others:
        return "–"
    return f"{statistics.median(values) / statistics.median(others):.2f} ({p95(values) / p95(others):.2f})"


# MARK: memory

def memory_rules(options):
    return {"background": {"suspend_after": "never"}, "hibernate": {"after": "never"},
            "trim": {"after": f"{options.after:g}s", "every": f"{options.every:g}s", **rules(options.mechanism[0])}}


def watch(pairs, daemon, options):
    """The run itself. Returns for each sample: seconds, the daemon's processor seconds and RSS in MB, the RAM in MB that
    memory in swap uses (compressed, or in the swap cache), and all costs of the daemon."""
    costs, number, before = [], 0, swap.all_in_ram()
    start = time.monotonic()
    due = {pair.key: place * 0.3 + 1 for place, pair in enumerate(pairs)}
    sample = 0.0
    while (passed := time.monotonic() - start) < options.minutes * 60:
        for pair in pairs:
            if pair.every and passed >= due[pair.key]:
                due[pair.key] += pair.every
                number += 1
                pair.ask(number)
        if passed >= sample:
            sample += options.sample
            for pair in pairs:
                pair.sample(passed)
            cost = daemon_cost(daemon)
            costs.append([round(passed, 1), cost["used"], cost["rss"], max(0, swap.all_in_ram() - before) / 1e6, cost])
        time.sleep(0.02)
    return costs


def memory(options, wanted):
    pairs = [Pair(*use) for use in USES if BY_NAME[use[1]] in wanted]
    daemon = Daemon({"policy_overrides": memory_rules(options),
                     "workers": {pair.key: pair.configuration() for pair in pairs}}, user=options.user)
    try:
        for pair in pairs:
            pair.begin(daemon, options.user)
        start = now()
        costs = watch(pairs, daemon, options)
        trims = journaled_trims(daemon, start)
        programs = {pair.key: pair.result(trims.get(pair.key, []), daemon.worker(pair.key)) for pair in pairs}
    finally:
        for pair in pairs:
            pair.end()
        daemon.close()
    first, last = costs[0], costs[-1]
    trimmed = sum(1 for row in programs.values() if row["trims"])
    return {"minutes": options.minutes, "after": options.after, "every": options.every,
            "mechanism": options.mechanism[0], "programs": programs, "swap in RAM": last[3],
            "daemon": {"processor": (last[1] - first[1]) / (last[0] - first[0]), "trimmed": trimmed, "samples": costs,
                       **{key: [first[4][key], last[4][key]] for key in ("anonymous", "rss", "pager")}}}


def memory_table(result):
    print("\n| worker | used by | MB before | after | twin | in swap or image | trims | stood still, ms: median (most) "
          "| faults a minute | light request, ms: median (p95) | twin | ratio | state |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|")
    for key, row in result["programs"].items():
        faults = "–" if row["faults"] is None else f"{row['faults']:.0f}"
        stops = [trim["stood still"] for trim in row["trims"]]
        still = f"{statistics.median(stops):.1f} ({max(stops):.1f})" if stops else "–"
        print(f"| {key} | {row['use']} | {row['before'] / 1e6:.1f} | {row['after'] / 1e6:.1f} | {row['twin'] / 1e6:.1f} "
              f"| {row['swapped'] / 1e6:.1f} | {len(row['trims'])} | {still} | {faults} | {short(row['times'][0])} "
              f"| {short(row['times'][1])} | {ratio(*row['times'])} | {'equal' if row['equal'] else 'DIFFERENT'} |")
    before, after, twins = (sum(row[key] for row in result["programs"].values()) for key in ("before", "after", "twin"))
    cost, count = result["daemon"], max(1, result["daemon"]["trimmed"])
    sizes = {key: f"{cost[key][0]:.1f} MB before, {cost[key][1]:.1f} after" for key in ("anonymous", "rss", "pager")}
    print(f"| all | | {before / 1e6:.1f} | {after / 1e6:.1f} | {twins / 1e6:.1f} | | | | | | | | |\n\n"
          f"{result['minutes']:g} minutes; trim.mechanism {result['mechanism']}, after {result['after']:g} s, every "
          f"{result['every']:g} s. In swap and still in RAM (compressed, or in the swap cache): "
          f"{result['swap in RAM']:.1f} MB.\nDaemon with its standby pager, and for each of {cost['trimmed']} trimmed "
          f"workers: {cost['processor']:.3%} of a core, {cost['processor'] / count:.3%} each; anonymous memory "
          f"{sizes['anonymous']}, {(cost['anonymous'][1] - cost['anonymous'][0]) * 1024 / count:.0f} KB each. RSS of the "
          f"daemon: {sizes['rss']}; of its pager: {sizes['pager']}.")
    return all(row["equal"] for row in result["programs"].values())


# MARK: ways in turns

class Comparison:
    """The ways of one program, in turns. One that fails is left out from then on; `failures` has the reasons."""

    def __init__(self, peers):
        self.peers = peers
        self.failures = {}
        self.results = {peer: {key: [] for key in ("first", "later", "all", "ram", "swap", "sleep", "still")}
                        for peer in peers}

    def each(self, peers, step):
        for peer in peers:
            if peer.name not in self.failures:
                try:
                    step(peer)
                except FAILURES as error:
                    self.failures[peer.name] = f"{error}" or repr(error)

    def launch(self, peer):
        peer.launch()
        peer.sum = peer.connection.checksum()
        for _ in range(20):
            peer.connection.ask("light")

    def round(self, number, kind, count):
        """All are put away; each has its first request, and then `count` light ones in turn. Returns the figures."""
        turn = [self.peers[(place + number) % len(self.peers)] for place in range(len(self.peers))]
        figures = {peer: {key: [] for key in self.results[peer]} for peer in turn}

        def put_away(peer):
            peer.prepare()
            start = time.perf_counter()
            peer.sleep()
            figures[peer]["sleep"].append((time.perf_counter() - start) * 1000)

        def measure(peer):
            ram, away = peer.asleep()
            figures[peer]["ram"].append(ram)
            figures[peer]["swap"].append(away)
            if getattr(peer, "stood_still", None) is not None:
                figures[peer]["still"].append(peer.stood_still)

        def wake(peer):
            start = time.perf_counter()
            peer.wake(kind)
            figures[peer]["first" if kind == "light" else "all"].append((time.perf_counter() - start) * 1000)
            peer.connection.rest()
            peer.settle()

        self.each(turn, put_away)
        time.sleep(PAUSE)
        self.each(turn, measure)
        self.each(turn, wake)
        for _ in range(count):
            self.each(turn, lambda peer: figures[peer]["later"].append(peer.connection.ask("light")))
            turn = turn[1:] + turn[:1]  # The first one after a pause finds colder caches.
            time.sleep(0.005)
        return figures

    def check(self, peer):
        peer.is_equal = peer.connection.checksum() == peer.sum

    def measured(self, kinds, later):
        """`kinds`: the request of each round. One more round, the first, isn't counted."""
        try:
            self.each(self.peers, self.launch)
            living = [peer for peer in self.peers if peer.name not in self.failures]
            size = max((anonymous(peer.pid) for peer in living), default=0)
            for number, kind in enumerate(kinds[:1] + kinds):
                figures = self.round(number, kind, later if kind == "light" else 0)
                for peer in self.peers if number else ():
                    for key, values in figures[peer].items():
                        self.results[peer][key] += values
            self.each(self.peers, self.check)
        finally:
            for peer in self.peers:
                with contextlib.suppress(AttributeError, *FAILURES):  # It may not have been launched.
                    peer.end()
                peer.close()
        return {"size": size, "ways": {
            peer.name: {**self.results[peer], "equal": getattr(peer, "is_equal", False),
                        "failure": self.failures.get(peer.name)} for peer in self.peers}}


def together(results):
    """The results of several launches as one."""
    whole = results[0]
    for result in results[1:]:
        whole["size"] = max(whole["size"], result["size"])
        for name, row in whole["ways"].items():
            more = result["ways"][name]
            for key, value in row.items():
                if isinstance(value, list):
                    value += more[key]
            row["equal"] = row["equal"] and more["equal"]
            row["failure"] = row["failure"] or more["failure"]
    return whole


def state(row):
    return f"failed: {row['failure']}" if row["failure"] else "equal" if row["equal"] else "DIFFERENT"


def rows(name, result):
    """For each way: the first cell, its name, what was measured, and what was measured of the twin."""
    twin = result["ways"].get("untouched", {})
    for number, (way, row) in enumerate(result["ways"].items()):
        yield f"{name}, {result['size'] / 1e6:.0f} MB" if number == 0 else "", way, row, twin


def are_whole(results):
    return all(row["equal"] and not row["failure"] for result in results.values() for row in result["ways"].values())


# MARK: latency and objects

def latency(options, wanted):
    print("\n| worker | way | first light request, ms | × twin | later ones | × twin | first request, all objects "
          "| to put away | stood still | MB in RAM | in swap or image | state |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|", flush=True)
    programs, kinds = {}, ["light"] * options.rounds + ["all"] * options.all_rounds
    for program in wanted:
        programs[program.name] = together([
            Comparison(ways(program, options.size or size_of(program), options)).measured(kinds, options.later)
            for _ in range(options.launches)])
        for head, way, row, twin in rows(program.name, programs[program.name]):
            print(f"| {head} | {way} | {short(row['first'])} | {ratio(row['first'], twin.get('first'))} "
                  f"| {short(row['later'])} | {ratio(row['later'], twin.get('later'))} | {milliseconds(row['all'])} "
                  f"| {milliseconds(row['sleep'])} | {milliseconds(row['still'])} | {megabytes(row['ram'])} "
                  f"| {megabytes(row['swap'])} | {state(row)} |", flush=True)
    print(f"\nMedians (p95) of {options.rounds} rounds, {options.all_rounds} for all objects, of each of {options.launches} "
          f"launches, each {PAUSE:g} s after the worker was put away, with the ways in turns. × twin: the ratio of the "
          "medians (of the p95).")
    return {"rounds": options.rounds, "hogs": options.hogs, "programs": programs}


def objects(options, _):
    """Python's worker, by size, because the time is that of its pages."""
    print("\n| worker | way | first request, all objects, ms | × twin | to put away | stood still | MB in RAM "
          "| in swap or image | state |\n|---|---|---:|---:|---:|---:|---:|---:|---|", flush=True)
    sizes = {}
    for size in options.megabytes:
        comparison = Comparison(ways(BY_NAME["python"], max(1, round((size * 1e6 - EMPTY) / OBJECT)), options))
        sizes[size] = comparison.measured(["all"] * options.rounds, 0)
        for head, way, row, twin in rows("python", sizes[size]):
            print(f"| {head} | {way} | {milliseconds(row['all'])} | {ratio(row['all'], twin.get('all'))} "
                  f"| {milliseconds(row['sleep'])} | {milliseconds(row['still'])} | {megabytes(row['ram'])} "
                  f"| {megabytes(row['swap'])} | {state(row)} |", flush=True)
    print(f"\nMedians (p95) of {options.rounds} rounds, each {PAUSE:g} s after the worker was put away, with the ways in turns.")
    return {"rounds": options.rounds, "hogs": options.hogs, "programs": sizes}


# MARK: many

def crowds(options):
    made = {f"trimmed, {mechanism}": lambda mechanism=mechanism: TrimmedCrowd(options, mechanism)
            for mechanism in options.mechanism}
    if options.pages_out:
        made["paged out without Dormouse"] = lambda: PagedOutCrowd(options)
    return {name: make for name, make in made.items() if is_wanted(name, options)}


def crowd_result(crowd, options):
    """One crowd: woken untouched, put away, at rest, and woken in each turn."""
    def cost():
        return daemon_cost(crowd.daemon) if crowd.daemon else dict.fromkeys(("used", "anonymous", "rss", "pager"), 0)

    crowd.start()
    sums = [connection.checksum() for connection in crowd.chosen()]
    untouched = crowd.wake()
    before, in_ram = cost(), swap.all_in_ram()
    start = time.monotonic()
    crowd.sleep()
    passed = time.monotonic() - start
    time.sleep(PAUSE)
    ram, away = crowd.left()
    copies = max(0, swap.all_in_ram() - in_ram)
    trimmed, start = cost(), time.monotonic()
    time.sleep(options.idle)
    idle = (cost()["used"] - trimmed["used"]) / (time.monotonic() - start)
    turns = [crowd.wake()]
    for _ in range(options.turns - 1):
        crowd.sleep()
        time.sleep(PAUSE)
        turns.append(crowd.wake())
    after = cost()
    equal = sums == [connection.checksum() for connection in crowd.chosen()]
    return {"untouched": untouched, "put away": passed, "ram": ram, "copies": copies, "away": away, "turns": turns,
            "daemon": [before, trimmed, after], "idle": idle, "equal": equal}


def many(options, _):
    print("\n| way | untouched, ms: median (p99) | put away in, s | MB in RAM | zram's copies | in swap or image "
          "| first byte, ms: median (p99) of each turn | daemon's RSS, MB: before, trimmed, at the end "
          "| its pager's RSS | anonymous memory of both, KB for each worker | % of a core at rest | state |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|", flush=True)
    results = {}
    for name, make in crowds(options).items():
        crowd = make()
        try:
            row = results[name] = crowd_result(crowd, options)
        except FAILURES as error:
            print(f"| {name} | | | | | | | | | | | failed: {error} |", flush=True)
            results[name] = {"equal": False, "failure": f"{error}"}
            continue
        finally:
            with contextlib.suppress(AttributeError, *FAILURES):  # It may not have been launched.
                crowd.close()
        times = [f"{statistics.median(each):.1f} ({percentile(each, 0.99):.1f})"
                 for each in [row["untouched"]] + row["turns"]]
        each = (row["daemon"][1]["anonymous"] - row["daemon"][0]["anonymous"]) * 1024 / options.workers
        daemon = [", ".join(f"{cost[key]:.1f}" for cost in row["daemon"]) for key in ("rss", "pager")]
        daemon += [f"{each:.1f}", f"{row['idle'] * 100:.2f}"]
        print(f"| {name} | {times[0]} | {row['put away']:.1f} | {row['ram'] / 1e6:.0f} | {row['copies'] / 1e6:.0f} "
              f"| {row['away'] / 1e6:.0f} | {', '.join(times[1:])} | {' | '.join(daemon if crowd.daemon else ['–'] * 4)} "
              f"| {'equal' if row['equal'] else 'DIFFERENT'} |", flush=True)
    print(f"\n{options.workers} workers of python with {options.objects} objects; {options.wakes} requests in a second.")
    return {"workers": options.workers, "wakes": options.wakes, "ways": results}


# MARK: the program

def numbers(text):
    return [float(word) for word in text.split(",")]


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="DORMOUSE=FILE in the environment names the executable, MEMCR=FILE memcr's. Ways that need swap are left out "
        "if none is on and none can be made, which takes root.")
    parser.add_argument("mode", choices=("memory", "latency", "objects", "many"))
    parser.add_argument("--mechanism", nargs="+", choices=("auto", "userfaultfd", "swap"),
                        help="trim.mechanism; several are compared (userfaultfd and swap; memory takes one: auto)")
    parser.add_argument("--program", nargs="+", choices=list(BY_NAME), default=[name for name in BY_NAME if name != "c"])
    parser.add_argument("--user", help="the daemon and the workers are this user's; the script is root's")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="ways whose name contains one of these words")
    parser.add_argument("--swap", choices=("zram", "file"), default="zram", help="what is made if no swap is on (zram)")
    parser.add_argument("--swap-megabytes", type=int, help="its size (2048; many: 40 for each worker)")
    parser.add_argument("--output", "--json", metavar="FILE", help="all numbers, as JSON")
    parser.add_argument("--hogs", action="store_true", help="with a process on each processor that computes all the time")
    group = parser.add_argument_group("memory")
    group.add_argument("--minutes", type=float, default=10)
    group.add_argument("--sample", type=float, default=5, help="seconds between two measurements (5)")
    group.add_argument("--after", type=float, default=30, help="seconds until the first trim, as trim.after (30)")
    group.add_argument("--every", type=float, default=120, help="as trim.every (120)")
    group = parser.add_argument_group("latency, objects")
    group.add_argument("--rounds", type=int, default=9)
    group.add_argument("--all-rounds", type=int, default=3, help="rounds whose request touches all objects (3)")
    group.add_argument("--launches", type=int, default=1, help="latency: each with new processes, all counted together (1)")
    group.add_argument("--later", type=int, default=20, help="light requests after the first one (20)")
    group.add_argument("--size", type=int, help="in objects, keys or MB: see Peers/programs.py")
    group.add_argument("--megabytes", type=numbers, default=[15, 44, 123], help="sizes of objects' worker (15,44,123)")
    group.add_argument("--resume", choices=("auto", "eager", "lazy"), default="lazy", help="of the frozen worker (lazy)")
    group.add_argument("--memcr", metavar="FILE", default=os.environ.get("MEMCR"))
    group = parser.add_argument_group("many")
    group.add_argument("--workers", type=int, default=1000)
    group.add_argument("--objects", type=int, default=13000, help="of each worker; 13000 make 15 MB")
    group.add_argument("--wakes", type=int, default=200, help="requests in a second, each to another worker (200)")
    group.add_argument("--turns", type=int, default=2)
    group.add_argument("--idle", type=float, default=30, help="seconds at rest, for the daemon's processor time (30)")
    options = parser.parse_args()
    options.mechanism = options.mechanism or (["auto"] if options.mode == "memory" else ["userfaultfd", "swap"])
    if options.mode == "memory" and len(options.mechanism) > 1:
        parser.error("memory takes one mechanism")
    options.memcr = options.memcr if options.mode == "objects" else None
    return options


def installed(options):
    names = options.program if options.mode in ("memory", "latency") else ["python"]
    for program in (BY_NAME[name] for name in names):
        if program.is_there():
            yield program
        else:
            print(f"left out: {program.name}: {program.tool} is not installed")


def pages_out(options):
    """Whether another process can move a worker's pages to swap. Says why not."""
    if options.mode == "memory" or not is_wanted("paged out without Dormouse", options):
        return False
    try:
        if os.geteuid() != 0:
            raise swap.Unavailable("needs root")
        swap.MemoryGroup().close()
        return True
    except swap.Unavailable as error:
        print(f"left out: paged out without Dormouse: {error}")
        return False


def prepare_swap(options, stack):
    """Swap for the ways that need it, and its description. Without it they are left out."""
    options.pages_out = pages_out(options)
    trims = [each for each in options.mechanism if each != "userfaultfd" and is_wanted(f"trimmed, {each}", options)]
    if not trims and not options.pages_out:
        return "none"
    size = options.swap_megabytes or (40 * options.workers if options.mode == "many" else 2048)
    try:
        return stack.enter_context(device(options.swap, size))
    except (OSError, swap.Unavailable) as error:
        print(f"left out: everything that needs swap: none is on, and none can be made: {error}")
        options.pages_out = False
        options.mechanism = [each for each in options.mechanism if each != "swap"]
        if not options.mechanism:
            sys.exit("nothing is left to be measured")
        return "none"


def main():
    options = arguments()
    if not os.path.exists(BINARY):
        sys.exit(f"there is no {BINARY} yet; `make build` builds it, or DORMOUSE names it")
    if options.user and (os.geteuid() != 0 or not shutil.which("setpriv")):
        sys.exit("--user needs root, and setpriv")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that swap is switched off
    with contextlib.ExitStack() as stack:
        description = prepare_swap(options, stack)
        about = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "swap": description,
                 "user": options.user or ("root" if os.geteuid() == 0 else "an ordinary user")}
        print(f"{about['machine']}; swap: {description}; the daemon's user: {about['user']}", flush=True)
        wanted = list(installed(options))
        for program in wanted:
            stack.callback(program.remove)
        stack.enter_context(Hogs(options.hogs))
        result = {"memory": memory, "latency": latency, "objects": objects, "many": many}[options.mode](options, wanted)
        if options.mode == "memory":
            is_whole = memory_table(result)
        elif options.mode == "many":
            is_whole = all(row["equal"] for row in result["ways"].values())
        else:
            is_whole = are_whole(result["programs"])
        result = {**about, "load at the end": os.getloadavg()[0], "mode": options.mode, **result}
        if options.output:
            with open(options.output, "w") as file:
                json.dump(result, file)
    sys.exit(0 if is_whole else 1)


if __name__ == "__main__":
    main()
