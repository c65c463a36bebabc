#!/usr/bin/env python3
"""Is the screen of a terminal program under `dormouse wrap` what it is without?

    python3 Benchmarks/screens.py [PROGRAM...]

In tmux, each program gets the same keys three times: plainly, under a wrapper with a cgroup, and under one without. The
wrapper has put the program to sleep before each key. After each key the screens are compared. Ends with 1 if one
differs. psql connects to $SCREENS_DATABASE (its options).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from bench import BINARY

TUI = r"""
const kept = Array(200000).fill(0).map((_, i) => ({id: i}));
let text = '', row = 0;
process.stdin.setRawMode(true);
function draw() {
  process.stdout.write('\x1b[2J\x1b[H\x1b[1mAgent\x1b[0m ' + process.stdout.columns + ' columns\n');
  for (let i = 0; i < 5; i++) process.stdout.write((i == row ? '> ' : '  ') + 'message ' + kept[i].id + '\n');
  process.stdout.write('\n[' + text + ']\n');
}
process.stdin.on('data', data => {
  const key = data.toString();
  if (key === '\x1b[B') row++; else if (key === '\x1b[A') row--; else text += key;
  draw();
});
process.stdout.on('resize', draw);
draw();
"""


def programs(directory):
    """Name, command, keys. A key of more than one letter that begins with a capital is tmux's name of it."""
    text, tui = f"{directory}/text.txt", f"{directory}/tui.js"
    with open(text, "w") as file:
        file.writelines(f"line {number} of the text\n" for number in range(20_000))
    with open(tui, "w") as file:
        file.write(TUI)
    return {
        "vim": (f"vim -u NONE -n {text}", ["3j", "ihello ", "Escape", "G", "kk", "x"]),
        "less": (f"less {text}", ["Space", "j", "j", "/77", "Enter", "n", "G", "b"]),
        "nano": (f"nano -R -v {text}", ["Down", "C-w", "777", "Enter"]),
        "htop": ("htop -d 600 -p 1", ["F1", "q", "F6", "Escape"]),
        "python3": ("python3 -q", ["x=1+2", "Enter", "for i in range(3): print(i*x)", "Enter", "Enter"]),
        "ipython3": ("ipython3 --no-banner", ["x=1+2", "Enter", "x*7", "Enter", "Up", "Up"]),
        "node": ("node", ["x=1+2", "Enter", "x*7", "Enter", "Up", "Up"]),
        "tui": (f"node {tui}", ["a", "Down", "Down", "Up", "b", "c"]),
        "psql": (f"psql -X {os.environ.get('SCREENS_DATABASE', '')}",
                 ["create temp table t(a int);", "Enter", "\\\\d t", "Enter", "select 1+2;", "Enter", "Up"]),
        "bash": ("bash --norc", ["echo a", "Enter", "sleep 100 &", "Enter", "jobs", "Enter", "C-c", "Up"]),
        "job": ("bash --norc", [f"vim -u NONE -n {text}", "Enter", "3j", "ihello ", "Escape", "C-z", "fg",
                                "Enter", "G"]),
    }


def tmux(*words):
    return subprocess.run(["tmux", "-L", "dormouse-screens", "-f", "/dev/null", *words],
                          capture_output=True, text=True, check=False).stdout


class Wrong(Exception):
    pass


def asleep(log):
    """Until the wrapper has put the program to sleep, and for small programs no hibernation follows."""
    end = time.monotonic() + 30
    suspended = None
    while time.monotonic() < end:
        try:
            with open(log) as file:
                last = file.read().strip().rpartition("\n")[2]
        except OSError:
            last = ""
        if "→ hibernated" in last:
            return "hibernated"
        if "→ suspended" in last:
            suspended = suspended or time.monotonic()
            if time.monotonic() - suspended > 2:
                return "suspended"
        else:
            suspended = None
        time.sleep(0.05)
    raise Wrong(f"it doesn't sleep: {last}")


def settled():
    """The screen, when it hasn't changed for half a second."""
    screen, since = tmux("capture-pane", "-p", "-t", "s"), time.monotonic()
    end = since + 15
    while time.monotonic() - since < 0.5 and time.monotonic() < end:
        time.sleep(0.1)
        now = tmux("capture-pane", "-p", "-t", "s")
        if now != screen:
            screen, since = now, time.monotonic()
    return screen


def play(command, keys, wrapped, environment=()):
    """The screen after each key, and the deepest sleep that each key met."""
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(f"{directory}/run", 0o700)
        log = f"{directory}/log"
        variables = [f"XDG_STATE_HOME={directory}/state", f"XDG_RUNTIME_DIR={directory}/run", "PS1='$ '",
                     "INPUTRC=/dev/null", "HISTFILE=", f"IPYTHONDIR={directory}/ipython", "LESSHISTFILE=-",
                     "NODE_REPL_HISTORY=''", "PSQL_HISTORY=/dev/null", "PYTHONSTARTUP=", *environment]
        wrap = f"{BINARY} wrap --idle-after 700ms --hibernate-after 100ms --log {log} -- " if wrapped else ""
        # The last server may not have ended yet.
        while "s:" not in tmux("list-sessions"):
            tmux("new-session", "-d", "-s", "s", "-x", "80", "-y", "24",
                 f"env {' '.join(variables)} {wrap}{command}")
        screens, sleeps = [], []
        try:
            end = time.monotonic() + 20
            while not settled().strip() and time.monotonic() < end:
                pass  # It hasn't drawn anything yet.
            for key in keys:
                if wrapped:
                    sleeps.append(asleep(log))
                named = len(key) > 1 and (key[0] == "F" or key[:2] == "C-" or key in
                                          ("Escape", "Enter", "Space", "Down", "Up"))
                tmux("send-keys", "-t", "s", *([key] if named else ["-l", key]))
                screens.append(settled())
        finally:
            tmux("kill-server")
        return screens, sleeps


def plain(screen, name, way):
    """Without what differs from run to run."""
    if way == "no cgroup":
        # Sleep ends with SIGCONT there. These redraw for it, without their last message.
        if name in ("vim", "job"):
            screen = re.sub(r'^("/tmp/.* bytes|1 line less.*|)$', "", screen, flags=re.M)
        if name == "nano":
            screen = re.sub(r"^ *\[ Read .* \]$", "", screen, flags=re.M)
    screen = "\n".join(line.rstrip() for line in screen.rstrip().split("\n"))
    screen = re.sub(r"\[(\d)\] \d+", r"[\1] PID", screen)
    screen = re.sub(r"\S+ wrap --idle-after.* -- ", "", screen)
    if name == "htop":  # its meters change all the time
        screen = "\n".join(line for line in screen.split("\n") if re.search("F1|F10|Sort|Help", line))
    return screen


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as directory:
        known = programs(directory)
        for name in sys.argv[1:] or known:
            command, keys = known[name]
            if not shutil.which(command.split()[0]):
                print(f"{name}: not installed")
                continue
            expected, _ = play(command, keys, False)
            for way, environment in (("cgroup", []), ("no cgroup", ["DORMOUSE_CGROUP=/proc/nowhere"])):
                try:
                    screens, sleeps = play(command, keys, True, environment)
                except Wrong as wrong:
                    print(f"{name}, {way}: {wrong}")
                    bad = 1
                    continue
                differ = [key for key, one, other in zip(keys, expected, screens)
                          if plain(one, name, way) != plain(other, name, way)]
                deep = sleeps.count("hibernated")
                print(f"{name}, {way}: {len(keys)} keys, {deep} to a hibernated program and "
                      f"{len(keys) - deep} to a suspended one: "
                      + (f"differs after {differ}" if differ else "the same screens"), flush=True)
                if differ:
                    bad = 1
                    index = keys.index(differ[0])
                    print(expected[index], "----- wrapped:", screens[index], sep="\n")
    sys.exit(bad)


main()
