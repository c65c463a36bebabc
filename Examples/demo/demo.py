#!/usr/bin/env python3
"""What Dormouse does, on real programs: launch, background, shed, suspend, hibernate, resume, and a
termination when memory runs out. `demo.py DORMOUSE`; all files are in a temporary directory."""
import json
import os
import shutil
import signal
import sys
import textwrap
import time

from cast import HERE, cast, memory
from daemon import Daemon, Refused

BUDGET_MB = 224
IS_TERMINAL = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def title(text):
    print(f"\n\033[1m{text}\033[0m" if IS_TERMINAL else f"\n== {text}", flush=True)


def line(text):
    """A line of output, wrapped at a narrow terminal."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000
    # Names are in columns, and keep their blanks.
    print(textwrap.fill(text, max(room, 40), initial_indent="   ", subsequent_indent=" " * 12,
                        break_long_words=False, break_on_hyphens=False), flush=True)


def row_line(text):
    """A row of a table, as it is."""
    print(f"   {text}", flush=True)


def size(count):
    if count is None:
        return "-"
    return f"{count >> 10} KB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MB"


def span(milliseconds):
    return "-" if milliseconds is None else f"{milliseconds:.0f} ms"


class Story:
    def __init__(self, binary):
        self.players, missing = cast()
        self.front = self.players[-1]
        self.crowd = self.players[:-1]
        for name in missing:
            line(f"({name} isn't installed: left out)")
        self.daemon = Daemon(binary, os.path.join(HERE, "..", "..", "Policies"), {
            "policy_overrides": {"memory": {"budget": f"{BUDGET_MB}MB"},
                                 "hibernate": {"cooldown": "0s"}},
            "workers": {player.name: player.configuration for player in self.players}})

    def ask(self, *words):
        """Runs a verb and prints a refusal. Whether it happened."""
        try:
            self.daemon.verb(*words)
            return True
        except Refused as refusal:
            line(f"dormouse {' '.join(words)}: {refusal}")
            return False

    def close(self):
        self.daemon.end()
        for player in self.players:
            if player.is_left():
                os.kill(player.pid, signal.SIGKILL)

    def launch(self):
        title(f"{len(self.players)} apps on a device with {BUDGET_MB} MB, policy ios-5")
        for player in self.players:
            self.daemon.verb("start", player.name)
            player.pid = self.daemon.workers()[player.name]["pid"]
            player.meet()
            player.launched = memory(player.pid)[0]
            line(f"{player.name:8} {player.what}: pid {player.pid}, {size(player.launched)}; "
                 "a client is connected")
        self.ask("foreground", self.front.name)
        if "cgroup" not in self.daemon.freezer():
            line("(no cgroup can be made here, so workers are stopped by signal; `dormouse doctor` "
                 "shows how to enable cgroups)")

    def leave(self):
        title("All but the browser go to the background; a worker with `shed:` frees memory first")
        for player in self.crowd:
            if not self.ask("background", player.name) or "shed" not in player.configuration:
                continue
            self.wait(lambda: memory(player.pid)[0] < player.launched - (1 << 20), 5)
            line(f"{player.name:8} was asked to free memory, and freed its cache: "
                 f"{size(player.launched)} → {size(memory(player.pid)[0])}")

    @staticmethod
    def wait(condition, seconds):
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            time.sleep(0.02)

    def sleep(self):
        title("Suspended: no processor time. Hibernated: memory on disk, the process stays")
        for player in self.crowd:
            if not self.ask("suspend", player.name):
                continue
            player.awake = memory(player.pid)[0]
            if "policy" in player.configuration:
                line(f"{player.name:8} stays suspended, {size(player.awake)}: its policy says so")
                continue
            self.ask("hibernate", player.name)
            worker = self.daemon.workers()[player.name]
            anonymous, files = memory(player.pid)
            if worker["state"] != "hibernated":
                line(f"{player.name:8} stays {worker['state']}, {size(anonymous)}")
                continue
            player.asleep, player.image = anonymous, worker.get("imageSize")
            line(f"{player.name:8} {size(player.awake)} → {size(anonymous)} in RAM, "
                 f"{size(player.image)} on disk (and {size(files)} of clean file pages, which the "
                 "kernel can drop)")
        print()
        self.show("ps")

    def resume(self):
        title("Each is resumed: the same connection, the next number, every byte")
        for player in self.crowd:
            if player.asleep is None:
                continue
            start = time.monotonic()
            answer = self.daemon.request("foreground", player.name)
            player.visit()
            player.resume = (time.monotonic() - start) * 1000
            answer()
            player.check()
            line(f"{player.name:8} answered after {span(player.resume)}: visit {player.visits} on "
                 f"the connection of visit 1 (from port {player.line.local_port}), digest as before")
        self.ask("foreground", self.front.name)
        for player in self.crowd:
            if player.asleep is not None and self.ask("suspend", player.name):
                self.ask("hibernate", player.name)

    def press(self):
        title("The browser uses more and more memory")
        grown, ended, end = 0, [], time.monotonic() + 40
        while not ended and time.monotonic() < end:
            # No worker is terminated in vain: what is missing must be what one of them holds.
            if self.daemon.status()["pressure"] != "critical":
                try:
                    self.front.line.get("/grow?mb=8")
                except OSError:
                    end = 0.0  # it was terminated itself
                grown += 8
            time.sleep(0.25)
            ended = [name for name, worker in self.daemon.workers().items()
                     if worker["state"] in ("terminating", "terminated")]
        self.wait(self.has_report, 5)  # it is written after recovery
        if not ended:
            return line(f"{grown} MB more; no worker was terminated")
        line(f"{grown} MB more; terminated: {', '.join(ended)}. The jetsam report:")
        print()
        self.show("jetsam")
        for player in self.players:
            if player.name in ended:
                player.end = "terminated for memory"

    def has_report(self):
        return "id" in json.loads(self.daemon.verb("jetsam", "--json"))

    def show(self, *words):
        try:
            self.daemon.show(*words)
        except Refused as refusal:
            line(str(refusal))

    def relaunch(self):
        title("Without Dormouse: start again, until the first answer")
        self.ask("stop", self.front.name)  # and make room
        for player in self.crowd:
            try:
                self.daemon.verb("stop", player.name)
            except Refused:
                pass  # it was terminated already
            player.line.close()
            start = time.monotonic()
            answer = self.daemon.request("start", player.name)
            player.line = player.talk(player.port)
            player.line.visit()
            player.relaunch = (time.monotonic() - start) * 1000
            answer()
            player.pid = self.daemon.workers()[player.name]["pid"]
            line(f"{player.name:8} {span(player.relaunch)}, its state and its connections are lost")

    def table(self):
        title("Summary")
        rows = [("worker", "awake", "asleep", "on disk", "resume", "relaunch", "")]
        for player in self.crowd:
            gain = ""
            if player.resume and player.relaunch:
                ratio = player.relaunch / player.resume
                gain = (f"{ratio:.1f} times as fast" if ratio > 1.2 else
                        "about as fast" if ratio > 0.8 else "slower")
            rows.append((player.name, size(player.awake), size(player.asleep), size(player.image),
                         span(player.resume), span(player.relaunch), player.end or gain))
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        for row in rows:
            cells = [row[0].ljust(widths[0])] + [row[i].rjust(widths[i]) for i in range(1, 6)]
            row_line("  ".join(cells + [row[6]]).rstrip())
        line("awake, asleep: anonymous memory in RAM. resume, relaunch: from the request to the "
             "daemon until the first answer. A resumed worker keeps its state and connections; a "
             "relaunched one loses both.")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: demo.py DORMOUSE")
    started, story = time.monotonic(), None
    try:
        story = Story(sys.argv[1])
        for part in (story.launch, story.leave, story.sleep, story.resume, story.press,
                     story.relaunch, story.table):
            part()
    except (Refused, AssertionError, OSError, json.JSONDecodeError) as problem:
        print(f"\nThe demo ends here: {problem}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if story:
            story.close()
    print(f"\n{time.monotonic() - started:.0f} seconds.")


main()
