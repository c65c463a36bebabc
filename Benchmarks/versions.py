#!/usr/bin/env python3
"""Two builds of dormouse beside each other: `dormouse bench` of each in turn, on the same program.

    versions.py BEFORE AFTER [--series 3] [--rounds 12] [--megabytes 6]

Prints the medians in ms. Exit code 1: a bench didn't succeed.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

from bench import ROOT, free_port

PROGRAM = os.path.join(ROOT, "Tests", "Fixtures", "http_state.py")


def measure(binary, rounds, megabytes, directory):
    port = str(free_port())
    done = subprocess.run(
        [binary, "bench", "--rounds", str(rounds), "--json", "--state-directory", directory,
         "--request", f"http://127.0.0.1:{port}/count", "--",
         sys.executable, PROGRAM, "--port", port, "--megabytes", str(megabytes)],
        capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{binary}: exit code {done.returncode}: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    times = {mechanism["mechanism"]: mechanism["milliseconds"] for mechanism in report["mechanisms"]}
    times["hibernating"] = [one["milliseconds"] for one in report["hibernations"]]
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--series", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--megabytes", type=int, default=6)
    options = parser.parse_args()
    times = ({}, {})
    with tempfile.TemporaryDirectory(prefix="dormouse-versions-") as directory:
        for _ in range(options.series):
            for all_of, binary in zip(times, (options.before, options.after)):
                found = measure(binary, options.rounds, options.megabytes, directory)
                for name, values in found.items():
                    all_of.setdefault(name, []).extend(values)
    print("| | before | after | |\n|---|---:|---:|---:|")
    for name in times[0]:
        if times[0][name] and times[1].get(name):
            before, after = (statistics.median(one[name]) for one in times)
            print(f"| {name} | {before:.2f} | {after:.2f} | {100 * (after / before - 1):+.0f} % |")


main()
