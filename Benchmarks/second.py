#!/usr/bin/env python3
"""What does a hibernation cost the second time? See README.md here."""
import argparse
import os
import statistics
import sys
import time

from bench import ROOT, Daemon, figures, free_port, machine
from programs import programs
from cast import memory
from talk import Web

WAYS = ("complete", "compared", "tracked")


class Subject:
    """One program, run once for each way."""

    def __init__(self, title, command, talk):
        self.title, self.talk = title, talk
        self.ports = {way: free_port() for way in WAYS}
        self.command = command
        self.lines = {}
        self.times = {way: [] for way in WAYS}
        self.resumes = {way: [] for way in WAYS}
        self.written = {way: [] for way in WAYS}
        self.held = {way: 0 for way in WAYS}
        self.anonymous = 0

    def worker(self, way):
        return {
            "command": [str(self.ports[way]) if word == "PORT" else word for word in self.command],
            "readiness": {"tcp": self.ports[way]},
            "policy": {"hibernate": {"overlay": way != "complete", "resume": "eager"}}}

    def request(self, way):
        if self.talk is Web:
            self.lines[way].get("/count")
        else:
            self.lines[way].command("INCR", "count")


def one_round(daemon, subject, name, way, requests, counts):
    for _ in range(requests):
        subject.request(way)
    # Within 10 ms of a request the daemon can't know whether it was answered, and wakes the worker.
    time.sleep(0.03)
    daemon.ask("suspend", name)
    subject.anonymous = memory(daemon.worker(name)["pid"])[0]
    start = time.monotonic()
    daemon.ask("hibernate", name)
    took = (time.monotonic() - start) * 1000
    report = daemon.worker(name)
    start = time.monotonic()
    daemon.ask("wake", name)
    back = (time.monotonic() - start) * 1000
    if counts:
        subject.times[way].append(took)
        subject.resumes[way].append(back)
        subject.written[way].append(report["hibernateWritten"] / 1024)
        subject.held[way] = report["imageSize"] / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--requests", default="1,100")
    parser.add_argument("--megabytes", default="1,3,12")
    options = parser.parse_args()
    for requests in [int(count) for count in options.requests.split(",")]:
        measure(options, requests)


def measure(options, requests):
    cast = {f"subject-{n}": subject for n, subject in enumerate(
        Subject(*program)
        for program in programs([int(size) for size in options.megabytes.split(",")]))}
    # The daemon decides whether writes are tracked.
    daemons = {}
    for ways in (("complete", "tracked"), ("compared",)):
        environment = dict(os.environ)
        if "compared" in ways:
            environment["DORMOUSE_TRACKING"] = "off"
        daemon = Daemon({
            "policy": os.path.join(ROOT, "Policies", "ios-5.yaml"),
            "policy_overrides": {
                "memory": {"budget": "8GB"}, "foreground": {"max": "unlimited"},
                "hibernate": {"cooldown": "0s", "max_footprint": "unlimited", "after": "never",
                              "disk": {"daily_writes": "900GB"}}},
            "workers": {f"{name}-{way}": subject.worker(way)
                        for name, subject in cast.items() for way in ways}}, environment)
        daemons.update({way: daemon for way in ways})
    try:
        for name, subject in cast.items():
            for way in WAYS:
                daemons[way].ask("start", f"{name}-{way}")
                subject.lines[way] = subject.talk(subject.ports[way])
        for number in range(options.rounds + 2):
            print(f"\rround {number + 1} of {options.rounds + 2}", end="", file=sys.stderr, flush=True)
            for name, subject in cast.items():
                for way in WAYS:
                    # The first image makes the base, the second has the changes shortly after the start.
                    one_round(daemons[way], subject, f"{name}-{way}", way, requests, number > 1)
        print(file=sys.stderr)
    finally:
        for daemon in set(daemons.values()):
            daemon.close()

    print(f"{machine()}; {options.rounds} rounds, {requests} request{'s' * (requests > 1)} before each "
          "hibernation; median (range)\n")
    print("| worker | anonymous | way | hibernating, ms | written, KB | on disk, KB | resume, ms "
          "| complete ÷ this: time | writes |")
    print("|---|---|---|---|---|---|---|---|---|")
    for subject in cast.values():
        for way in WAYS:
            times, written = subject.times, subject.written
            faster = statistics.median(times["complete"]) / statistics.median(times[way])
            less = statistics.median(written["complete"]) / max(1, statistics.median(written[way]))
            print(f"| {subject.title} | {subject.anonymous / (1 << 20):.1f} MB | {way} "
                  f"| {figures(times[way])} | {figures(written[way])} | {subject.held[way]:.0f} "
                  f"| {figures(subject.resumes[way])} | {faster:.1f} | {less:.1f} |")
    print()


main()
