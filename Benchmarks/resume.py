#!/usr/bin/env python3
"""How fast does a worker resume? See README.md here."""
import argparse
import os
import signal
import statistics
import sys
import time

from bench import ROOT, Daemon, figures, free_port, machine
from programs import programs
from cast import memory
from talk import Web


class Subject:
    def __init__(self, name, command, talk):
        self.name, self.talk, self.port = name, talk, free_port()
        self.command = [str(self.port) if word == "PORT" else word for word in command]
        self.times = {"floor": [], "suspended": [], "hibernated": [], "relaunch": []}
        self.hibernation, self.left, self.image, self.anonymous = [], [], 0, 0

    def first_byte(self, begin):
        """Milliseconds from `begin` until an answer arrives on the open connection."""
        start = time.monotonic()
        begin()
        if self.talk is Web:
            self.line.get("/count")
        else:
            self.line.command("PING")
        return (time.monotonic() - start) * 1000


def suspend(daemon, name):
    # Within 10 ms of a request the daemon can't know whether it was answered, and wakes the worker.
    time.sleep(0.03)
    daemon.ask("suspend", name)


def one_round(daemon, subject, name):
    pid = daemon.worker(name)["pid"]
    os.kill(pid, signal.SIGSTOP)
    subject.times["floor"].append(subject.first_byte(lambda: os.kill(pid, signal.SIGCONT)))

    suspend(daemon, name)
    lines = []
    subject.times["suspended"].append(
        subject.first_byte(lambda: lines.append(daemon.send("wake", name))))
    daemon.answer(lines.pop())

    suspend(daemon, name)
    subject.anonymous = memory(pid)[0]
    start = time.monotonic()
    daemon.ask("hibernate", name)
    subject.hibernation.append((time.monotonic() - start) * 1000)
    subject.left.append(memory(pid)[0] >> 10)
    subject.image = daemon.worker(name)["imageSize"]
    subject.times["hibernated"].append(
        subject.first_byte(lambda: lines.append(daemon.send("wake", name))))
    daemon.answer(lines.pop())

    subject.line.close()
    daemon.ask("stop", name)
    start = time.monotonic()
    line = daemon.send("start", name)
    subject.line = subject.talk(subject.port)
    subject.times["relaunch"].append((time.monotonic() - start) * 1000 + subject.first_byte(int))
    daemon.answer(line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--megabytes", default="1,3,12")
    options = parser.parse_args()
    cast = {f"subject-{n}": subject for n, subject in enumerate(
        Subject(*program)
        for program in programs([int(size) for size in options.megabytes.split(",")]))}
    daemon = Daemon({
        "policy": os.path.join(ROOT, "Policies", "ios-5.yaml"),
        "policy_overrides": {
            "memory": {"budget": "8GB"}, "foreground": {"max": "unlimited"},
            "hibernate": {"cooldown": "0s", "max_footprint": "unlimited", "after": "never"}},
        "workers": {name: {"command": subject.command, "readiness": {"tcp": subject.port}}
                    for name, subject in cast.items()}})
    try:
        for name, subject in cast.items():
            daemon.ask("start", name)
            subject.line = subject.talk(subject.port)
            subject.first_byte(int)
        for number in range(options.rounds):
            print(f"\rround {number + 1} of {options.rounds}", end="", file=sys.stderr, flush=True)
            for name, subject in cast.items():
                one_round(daemon, subject, name)
        print(file=sys.stderr)
    finally:
        daemon.close()

    print(f"{machine()}; {options.rounds} rounds; milliseconds, median (range)\n")
    print("| worker | anonymous | floor | suspended | hibernated | relaunch | relaunch ÷ hibernated "
          "| hibernating took | left in RAM | image |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for subject in cast.values():
        times = subject.times
        ratio = statistics.median(times["relaunch"]) / statistics.median(times["hibernated"])
        print(f"| {subject.name} | {subject.anonymous / (1 << 20):.1f} MB | "
              + " | ".join(figures(times[key]) for key in
                           ("floor", "suspended", "hibernated", "relaunch"))
              + f" | {ratio:.1f} | {figures(subject.hibernation)} | "
                f"{statistics.median(subject.left):.0f} KB | {subject.image / (1 << 20):.1f} MB |")


main()
