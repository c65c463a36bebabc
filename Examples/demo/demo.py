#!/usr/bin/env python3
"""The main job, on real programs: launch, background, shed, suspend, hibernate, resume, and who
goes when memory runs out. `demo.py DORMOUSE`; everything happens in a temporary directory."""
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


def tell(text):
    """A line of the story; at a narrow terminal it goes on under itself."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000
    # Names stand in columns, and keep their blanks.
    print(textwrap.fill(text, max(room, 40), initial_indent="   ", subsequent_indent=" " * 12,
                        break_long_words=False, break_on_hyphens=False), flush=True)


def tell_row(text):
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
            tell(f"({name} isn't installed: it doesn't play)")
        self.daemon = Daemon(binary, os.path.join(HERE, "..", "..", "Policies"), {
            "policy_overrides": {"memory": {"budget": f"{BUDGET_MB}MB"},
                                 "hibernate": {"cooldown": "0s"}},
            "workers": {player.name: player.configuration for player in self.players}})

    def ask(self, *words):
        """A verb; a refusal is part of the story. Whether it happened."""
        try:
            self.daemon.verb(*words)
            return True
        except Refused as refusal:
            tell(f"dormouse {' '.join(words)}: {refusal}")
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
            tell(f"{player.name:8} {player.what}: pid {player.pid}, {size(player.launched)}; "
                 "a client is connected")
        self.ask("foreground", self.front.name)
        if "cgroup" not in self.daemon.freezer():
            tell("(no cgroup may be made here, so sleepers are stopped by signal; `dormouse doctor` "
                 "says how to do better)")

    def leave(self):
        title("All but the browser go to the background; who can, gives memory back first")
        for player in self.crowd:
            if not self.ask("background", player.name) or "shed" not in player.configuration:
                continue
            self.wait(lambda: memory(player.pid)[0] < player.launched - (1 << 20), 5)
            tell(f"{player.name:8} was asked to shed, and gave its cache back: "
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
            self.ask("hibernate", player.name)
            worker = self.daemon.workers()[player.name]
            anonymous, files = memory(player.pid)
            if worker["state"] != "hibernated":
                tell(f"{player.name:8} stays {worker['state']}, {size(anonymous)}")
                continue
            player.asleep, player.image = anonymous, worker.get("imageSize")
            tell(f"{player.name:8} {size(player.awake)} → {size(anonymous)} in RAM, "
                 f"{size(player.image)} on disk (and {size(files)} of clean file pages, which the "
                 "kernel can drop)")
        print()
        self.show("ps")

    def resume(self):
        title("Each comes back: the same connection, the next number, every byte")
        for player in self.crowd:
            if player.asleep is None:
                continue
            start = time.monotonic()
            answer = self.daemon.request("foreground", player.name)
            player.visit()
            player.resume = (time.monotonic() - start) * 1000
            answer()
            player.check()
            tell(f"{player.name:8} answered after {span(player.resume)}: visit {player.visits} on "
                 f"the connection of visit 1 (from port {player.line.local_port}), digest as before")
        self.ask("foreground", self.front.name)
        for player in self.crowd:
            if player.asleep is not None and self.ask("suspend", player.name):
                self.ask("hibernate", player.name)

    def press(self):
        title("The browser wants more and more")
        grown, gone, end = 0, [], time.monotonic() + 20
        while not gone and grown < 2 * BUDGET_MB and time.monotonic() < end:
            try:
                self.front.line.get("/grow?mb=8")
            except OSError:
                end = 0.0  # it was terminated itself
            grown += 8
            time.sleep(0.25)
            gone = [name for name, worker in self.daemon.workers().items()
                    if worker["state"] in ("terminating", "terminated")]
        self.wait(self.has_report, 5)  # it is written after recovery
        if not gone:
            return tell(f"{grown} MB more, and nobody had to go")
        tell(f"{grown} MB more: {' and '.join(gone)} had to go. The low memory report:")
        print()
        self.show("jetsam")
        for player in self.players:
            if player.name in gone:
                player.end = "had to go"

    def has_report(self):
        return "id" in json.loads(self.daemon.verb("jetsam", "--json"))

    def show(self, *words):
        try:
            self.daemon.show(*words)
        except Refused as refusal:
            tell(str(refusal))

    def relaunch(self):
        title("What the same would have cost without: start again, first answer")
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
            tell(f"{player.name:8} {span(player.relaunch)}, with its state and its clients lost")

    def table(self):
        title("In short")
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
            tell_row("  ".join(cells + [row[6]]).rstrip())
        tell("awake, asleep: anonymous memory in RAM. resume, relaunch: from the request to the "
             "daemon until the first answer. Who resumes has lost nothing; who is relaunched, its "
             "state and its clients.")


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
