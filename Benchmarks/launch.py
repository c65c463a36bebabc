#!/usr/bin/env python3
"""From the order to start a worker until its program runs, for one build or several in turns. See README.md here."""
import argparse
import os
import statistics
import tempfile
import time

from bench import BINARY, Daemon, machine

# A shell and date(1) take some 2 ms of the time, for each build the same.
PROGRAM = 'date +%s%N > "$0.new" && mv "$0.new" "$0" && exec sleep 1000'


class Build:
    def __init__(self, binary, directory):
        self.binary = binary
        self.times = []
        self.mark = os.path.join(directory, "mark")
        command = ["/bin/sh", "-c", PROGRAM, self.mark]
        self.daemon = Daemon(
            {"workers": {"w": {"command": command, "autostart": False, "restart": "no"}}}, binary=binary)

    def launch(self):
        began = time.time_ns()
        self.daemon.ask("start", "w")
        deadline = time.monotonic() + 60
        while not os.path.exists(self.mark):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.binary} started nothing within a minute")
            time.sleep(0.0005)
        with open(self.mark) as file:
            self.times.append((int(file.read()) - began) / 1e6)
        os.remove(self.mark)
        self.daemon.ask("stop", "w")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("builds", nargs="*", default=[BINARY], help="executables (default: the release build)")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="dormouse-launch-") as directory:
        builds = []
        try:
            for number, binary in enumerate(options.builds):
                place = os.path.join(directory, str(number))
                os.mkdir(place)
                builds.append(Build(binary, place))
            for _ in range(options.rounds):
                for build in builds:
                    build.launch()
            for build in builds:
                first, middle, last = statistics.quantiles(build.times, n=4)
                print(f"  {build.binary}: median {middle:.2f} ms, quartiles {first:.2f} to {last:.2f} ms, "
                      f"least {min(build.times):.2f} ms, {len(build.times)} launches")
        finally:
            for build in builds:
                build.daemon.close()


if __name__ == "__main__":
    main()
