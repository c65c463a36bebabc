#!/usr/bin/env python3
"""How many pods fit on a node, and what do their uses wait? Always on, ended when idle, swapped out, hibernated.

python3 Benchmarks/nodes.py [--nodes 1000] [--pods 100] [--seed 1] [--jobs 2] [--binary PATH]

Each node is a simulated day of its own seed. Needs `make build`."""
import argparse, concurrent.futures, json, os, subprocess, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The generator's footprints are those of small servers; a function of Azure's has ten times as much.
SIZE = 10
# ms, beside the program's own start: containerd took 970 ms here for a sandbox, a container and its start, at load 6.
CONTAINER_START = 800
IDLE = {"1m": 60, "5m": 300, "15m": 900, "1h": 3600}
# What a use waits that touches all of the memory, the time to put it away, and what stays in RAM: lines through what was
# measured side by side at 15, 44 and 123 MB (results/2026-11-23-peers.md).
WAYS = {
    "ended when idle": {
        "resume_base": f"{CONTAINER_START + 43}ms", "resume_per_mb": "1.28ms", "hibernate_base": "50ms",
        "hibernate_rate": "100GB", "image_share": "0%", "hibernated_rest": "1B"},
    "swap file": {
        "resume_base": "1ms", "resume_per_mb": "3.7ms", "hibernate_base": "2ms", "hibernate_rate": "1290MB",
        "image_share": "100%", "hibernated_rest": "100KB"},
    "hibernated": {
        "resume_base": "1ms", "resume_per_mb": "0.87ms", "hibernate_base": "27ms", "hibernate_rate": "1400MB",
        "image_share": "10%", "hibernated_rest": "64KB"},
}
# A use that touches little: the time doesn't grow with the size. Only for one of the waiting times.
LIGHT = {
    "swap file, light uses": WAYS["swap file"] | {"resume_base": "20ms", "resume_per_mb": "0ms"},
    "hibernated, light uses": WAYS["hibernated"] | {"resume_base": "6.5ms", "resume_per_mb": "0ms"},
}
POLICY = """name: idle-{name}
extends: server
pressure: {{ warning: never, urgent: never, critical: {{ available_below: 1% }} }}
foreground: {{ idle_after: 30s }}
background: {{ suspend_after: {suspend} }}
hibernate:
  enabled: {enabled}
  after: {after}
  max_footprint: unlimited
  min_footprint: 1MB
  only_if_faster_than_relaunch: false
  cooldown: 0s
  disk: {{ budget: 10240GB, daily_writes: 102400GB }}
"""


def policies(directory):
    paths = {}
    values = {name: ("10s", "true", f"{seconds - 40}s") for name, seconds in IDLE.items()}
    values["never"] = ("never", "false", "never")
    for name, (suspend, enabled, after) in values.items():
        paths[name] = os.path.join(directory, f"idle-{name}.yaml")
        with open(paths[name], "w") as file:
            file.write(POLICY.format(name=name, suspend=suspend, enabled=enabled, after=after))
    return paths


def trace(binary, directory, options, seed):
    """A day of one node: all pods sleep at its beginning, and have ten times the generator's footprint."""
    subprocess.run(
        [binary, "simulate", "--generate", "daily", "--workers", str(options.pods), "--seed", str(seed),
         "--uses-per-hour", str(options.uses), "--convert", "dormouse", "--output", directory],
        check=True, stdout=subprocess.DEVNULL)
    path = os.path.join(directory, "trace.csv")
    lines = []
    with open(path) as file:
        for line in file:
            fields = line.rstrip("\n").split(",")
            if fields[0] == "worker":
                fields[2] = str(int(fields[2]) * SIZE)
                fields = (fields + ["0", "0"])[:6] + ["hibernated"]
            lines.append(",".join(fields))
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    return path


def report(binary, path, policies, machine):
    command = [binary, "simulate", "--trace", path, "--policy", ",".join(policies), "--memory", "1024GB", "--json"]
    if machine:
        command += ["--machine", ",".join(f"{key}={value}" for key, value in machine.items())]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)}: {result.stderr}")
    return json.loads(result.stdout)


def node(arguments):
    binary, paths, options, seed = arguments
    rows = {}
    with tempfile.TemporaryDirectory() as directory:
        path = trace(binary, directory, options, seed)
        always = report(binary, path, [paths["never"]], {})
        found = [("always on", "never", always, always["reports"][0])]
        for way, machine in WAYS.items():
            answer = report(binary, path, [paths[name] for name in IDLE], machine)
            found += [(way, name, answer, each) for name, each in zip(IDLE, answer["reports"])]
        for way, machine in LIGHT.items():
            answer = report(binary, path, [paths["5m"]], machine)
            found.append((way, "5m", answer, answer["reports"][0]))
    for way, name, answer, each in found:
        slow = [point["uses"] for point in each["tail"] if point["milliseconds"] >= 1000]
        sleeps = name != "never"
        rows[way, name] = {
            "uses": answer["uses"],
            "mean": each["memoryGigabyteHours"] / answer["hours"],
            # What never sleeps needs room for all.
            "peak": each["peakGigabytes"] if sleeps else answer["footprintGigabytes"],
            # Nor does it wait, after the first use of the day.
            "wait": each["all"]["mean"] * answer["uses"] if sleeps else 0,
            "p99": each["all"]["p99"] if sleeps else 0,
            "second": slow[0] if slow and sleeps else 0, "written": each["writtenGigabytes"],
            "lost": each["lostUses"] + each["outOfMemory"]}
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--uses", type=float, default=3, help="uses of an average pod in an hour")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--binary", default=os.path.join(ROOT, ".build/release/dormouse"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        paths = policies(directory)
        work = [(os.path.abspath(options.binary), paths, options, options.seed + index)
                for index in range(options.nodes)]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            nodes = list(pool.map(node, work))
    print(f"{options.nodes} nodes × {options.pods} pods, seeds from {options.seed}, "
          f"{sum(each['always on', 'never']['uses'] for each in nodes):,} uses\n")
    print("| idle pods are | after | mean GB a node | peak GB, 99 % of nodes | pods in 64 GB | mean wait, ms "
          "| p99, ms: median node | uses over 1 s | written GB a node | lost |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for key in nodes[0]:
        rows = [each[key] for each in nodes]
        uses = sum(row["uses"] for row in rows)
        peak = sorted(row["peak"] for row in rows)[int(len(rows) * 0.99)]
        middle = sorted(row["p99"] for row in rows)[len(rows) // 2]
        print(f"| {key[0]} | {key[1]} | {sum(row['mean'] for row in rows) / len(rows):.2f} | {peak:.2f} "
              f"| {64 / peak * options.pods:.0f} | {sum(row['wait'] for row in rows) / uses:.1f} | {middle:.0f} "
              f"| {sum(row['second'] for row in rows) / uses:.2%} "
              f"| {sum(row['written'] for row in rows) / len(rows):.1f} | {sum(row['lost'] for row in rows)} |")


if __name__ == "__main__":
    main()
