#!/usr/bin/env python3
"""terminal_jobs.py SCENARIO WRAP...: drives `dormouse wrap` as a person at a terminal does. WRAP is the wrapper's
command up to and with `--`; it logs to the file that $WRAP_LOG names. Ends with 0, or prints what was wrong.

Each scenario runs in an interactive bash on a terminal of its own. What it ends with is checked against what the
program does without a wrapper."""
import fcntl
import os
import pty
import re
import select
import shlex
import struct
import sys
import termios
import time

PATIENCE = 60


class Wrong(Exception):
    pass


class Terminal:
    def __init__(self, command):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="vt100", PS1="$ ", INPUTRC="/dev/null", HISTFILE="")
            os.execvp(command[0], command)
        self.resize(24, 80)
        self.shown = b""

    def resize(self, rows, columns):
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, size)

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def read(self, seconds):
        if select.select([self.descriptor], [], [], seconds)[0]:
            try:
                self.shown += os.read(self.descriptor, 65536)
            except OSError:
                time.sleep(seconds)

    def expect(self, pattern):
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern.encode(), self.shown)
            if found:
                self.shown = self.shown[found.end():]
                return found
            if time.monotonic() > end:
                raise Wrong(f"no {pattern!r} in {self.shown[-2000:]!r}")
            self.read(0.2)

    def line(self, text, *patterns):
        """Types a line, and waits for the patterns and the next prompt of the shell."""
        self.type(text + "\n")
        for pattern in patterns:
            self.expect(pattern)
        return self.prompt()

    def ask(self, text, answer, prompt):
        """Types a line until it is answered so: a new size reaches the program only after a while."""
        end = time.monotonic() + PATIENCE
        while True:
            self.type(text + "\n")
            found = self.expect(prompt)
            if answer.encode() in found.string[:found.start()]:
                return
            if time.monotonic() > end:
                raise Wrong(f"no {answer!r} in {found.string!r}")
            time.sleep(0.2)

    def prompt(self):
        self.expect(r"\$ ")

    def suspend(self):
        self.type("\x1a")
        self.expect("Stopped")
        self.prompt()

    def quiet(self, seconds, pattern):
        """The pattern must not appear."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.1)
        if re.search(pattern.encode(), self.shown):
            raise Wrong(f"{pattern!r} in {self.shown!r}")


def log():
    try:
        with open(os.environ["WRAP_LOG"]) as file:
            return file.read()
    except FileNotFoundError:
        return ""


def asleep():
    """Waits until the program hibernates, and has done so after the last call."""
    end = time.monotonic() + PATIENCE
    while True:
        text = log()
        if len(text) > asleep.mark and "→ hibernated" in text.strip().rpartition("\n")[2]:
            asleep.mark = len(text)
            return
        if time.monotonic() > end:
            raise Wrong("it isn't hibernated")
        time.sleep(0.05)


asleep.mark = 0


def children(pid):
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        return [int(child) for thread in threads
                for child in open(f"/proc/{pid}/task/{thread}/children").read().split()]
    except OSError:
        return []


def tree(pid):
    return [pid] + [each for child in children(pid) for each in tree(child)]


def lives(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def command(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:  # it has ended
        return b""


def all_end(pids):
    end = time.monotonic() + PATIENCE
    while any(lives(pid) for pid in pids):
        if time.monotonic() > end:
            left = [(pid, command(pid)) for pid in pids if lives(pid)]
            raise Wrong(f"these live: {left}")
        time.sleep(0.05)


def wrapper(terminal):
    for pid in tree(terminal.pid):
        if b"\0wrap\0" in command(pid):
            return pid
    raise Wrong("there is no wrapper")


def python(terminal, wrap):
    """A python with 20 MB at its prompt."""
    terminal.type(wrap + " python3 -q\n")
    terminal.expect(">>> ")
    terminal.type("x = 5; y = bytearray(b'k') * 20_000_000\n")
    terminal.expect(">>> ")


def continue_python(terminal):
    terminal.type("fg\n")
    terminal.expect("python3")
    terminal.type("\nx + 2\n")
    terminal.expect(r"\n7")
    terminal.expect(">>> ")


def keys(terminal, wrap):
    python(terminal, wrap)
    for number in range(3):
        asleep()
        terminal.type("p")  # the first key wakes it, and comes once
        time.sleep(0.3 * number)
        terminal.type(f"rint(sum(y) + {number}, 'once')\n")
        terminal.expect(rf"\n{107 * 20_000_000 + number} once")
        terminal.expect(">>> ")
    asleep()
    terminal.type("\x03")
    terminal.expect("KeyboardInterrupt")
    terminal.expect(">>> ")
    asleep()
    terminal.resize(30, 100)
    terminal.ask("import os; os.get_terminal_size()", "columns=100, lines=30", ">>> ")
    asleep()
    terminal.type("\x04")
    terminal.prompt()
    terminal.line("echo end=$?", "end=0")


def cooked(terminal, wrap):
    program = ("x = bytearray(b'k') * 20_000_000; print('rea' + 'dy', flush=True); "
               "print('got', input(), x[7])")
    terminal.type(f"{wrap} python3 -c {shlex.quote(program)}\n")
    terminal.expect("ready")
    asleep()
    terminal.type("a line\x7fE\n")  # the kernel edits the line
    terminal.expect("got a linE 107")
    terminal.prompt()


def stop(terminal, wrap):
    python(terminal, wrap)
    for sleeps in [False, True]:
        if sleeps:
            asleep()
        terminal.suspend()
        terminal.line("jobs", "Stopped")
        time.sleep(1.5)
        continue_python(terminal)
    asleep()
    terminal.suspend()
    pids = tree(terminal.pid)[1:]
    terminal.line("kill -9 %1")
    all_end(pids)


def background(terminal, wrap):
    program = ("import os, time\nx = bytearray(b'k') * 20_000_000\nprint('rea' + 'dy', flush=True)\n"
               "while os.getpgrp() != os.tcgetpgrp(0): time.sleep(0.2)\n"
               "print('got', input(), x[7])")
    terminal.type(f"{wrap} python3 -c {shlex.quote(program)} &\n")
    terminal.expect("ready")
    asleep()
    terminal.type("fg\n")  # the shell sends no signal: the job wasn't stopped
    terminal.expect("python3")
    terminal.type("a line\n")
    terminal.expect("got a line 107")
    terminal.prompt()


def once(terminal, wrap):
    # Not print: a handler may interrupt another print. Python runs a handler after the call that the signal interrupts:
    # a signal that arrives just before the call would wait for its end, and the program may fall asleep meanwhile. So
    # the call waits for the signal's number in a pipe, too.
    program = ("import os, select, signal\n"
               "r, w = os.pipe()\nos.set_blocking(w, False)\nsignal.set_wakeup_fd(w)\n"
               "def note(number, frame): os.write(1, b'got %d\\n' % number)\n"
               "for each in (1, 10, 12, 15): signal.signal(each, note)\n"
               "x = bytearray(b'k') * 20_000_000\nos.write(1, b'rea' + b'dy\\n')\n"
               "while True:\n  if select.select([r], [], [], 2)[0]: os.read(r, 9)")
    terminal.type(f"{wrap} python3 -c {shlex.quote(program)} &\n")
    terminal.expect("ready")
    pid = wrapper(terminal)
    for sleeps in [False, True]:
        for number in [15, 10, 1]:
            if sleeps:
                asleep()
            terminal.type(f"kill -{number} %1\n")  # to wrapper and program
            terminal.expect("got")
            terminal.quiet(1, "got")
        if sleeps:
            asleep()
        os.kill(pid, 12)  # to the wrapper alone
        terminal.expect("got")
        terminal.quiet(1, "got")
    os.kill(pid, 9)


def shell(terminal, wrap):
    """A shell with jobs: its jobs are in process groups of their own."""
    terminal.line(wrap + " bash --norc -i")
    terminal.line("x=42; big=$(head -c 8000000 /dev/zero | tr '\\0' a); sleep 1000 &", r"\[1\]")
    asleep()
    terminal.line("echo v$x", "v42")
    asleep()
    terminal.type("\x03")
    terminal.prompt()
    terminal.line("jobs", "Running")
    asleep()
    terminal.resize(33, 111)
    terminal.ask("echo $COLUMNS columns", "111 columns", r"\$ ")
    python(terminal, "")
    asleep()
    terminal.type("\x03")
    terminal.expect("KeyboardInterrupt")
    terminal.expect(">>> ")
    asleep()
    terminal.suspend()
    continue_python(terminal)
    terminal.type("\x04")
    terminal.prompt()
    terminal.line("suspend", "Stopped")  # the inner shell stops itself
    terminal.type("fg\n")
    terminal.line("echo w$x", "w42")
    terminal.line("kill %1; exit 3", "exit")
    terminal.line("echo end=$?", "end=3")


def inner(terminal, wrap):
    """A wrapped job of a wrapped shell, which hears of its stop and its end."""
    terminal.line(wrap + " bash --norc -i")
    terminal.line("x=42; big=$(head -c 8000000 /dev/zero | tr '\\0' a)")
    log = os.environ["WRAP_LOG"]
    terminal.type(wrap.replace(log, log + ".inner") + " cat\n")
    asleep()
    terminal.suspend()
    asleep()  # The stopped job doesn't wake it again.
    terminal.type("fg\n")
    terminal.expect("-- cat\r\n")
    terminal.type("word\n")
    terminal.expect("word\r\nword")
    asleep()
    terminal.type("\x04")
    terminal.prompt()
    terminal.line("echo w$x", "w42")
    terminal.line("exit 3", "exit")
    terminal.line("echo end=$?", "end=3")


def again(terminal, wrap):
    """Ctrl-Z at any moment after `fg` stops the job again."""
    python(terminal, wrap)
    terminal.suspend()
    for number in range(12):
        terminal.type("fg\n")
        terminal.expect("python3 -q\r\n")
        time.sleep((number % 6) * 0.003)
        end = time.monotonic() + PATIENCE
        while b"Stopped" not in terminal.shown:  # a key before the job has the terminal is the shell's
            if time.monotonic() > end:
                states = [open(f"/proc/{pid}/stat").read().split()[1:5] for pid in tree(terminal.pid)]
                group = os.tcgetpgrp(terminal.descriptor)
                raise Wrong(f"Ctrl-Z has no effect, round {number}: {states}, foreground {group}")
            terminal.type("\x1a")
            time.sleep(0.3)
            terminal.read(0)
        terminal.expect("Stopped")
        terminal.prompt()
    terminal.line("kill -9 %1")


HOLDER = "import time; x = bytearray(b'k') * 12_000_000; print('hold' + 'er', flush=True); time.sleep(1000)"


def anonymous(pid):
    return int(re.search(r"RssAnon:\s+(\d+)", open(f"/proc/{pid}/status").read()).group(1))


def orphans(terminal, wrap):
    """A process whose parent has ended sleeps with the program, and ends with it."""
    terminal.line(wrap + " bash --norc -i")
    terminal.type(f"( python3 -c {shlex.quote(HOLDER)} & )\n")
    terminal.expect("holder")
    terminal.type("\n")
    terminal.prompt()
    asleep()
    held = [pid for pid in tree(terminal.pid) if b"hold" in command(pid)]
    if len(held) != 1 or anonymous(held[0]) > 4000:
        raise Wrong(f"{held}: {[anonymous(pid) for pid in held]} KB")
    terminal.type("exit 3\n")
    terminal.expect("exit")
    terminal.prompt()
    terminal.line("echo end=$?", "end=3")
    all_end(held)


def killed(terminal, wrap):
    """SIGKILL to wrapper and program leaves no child without its memory."""
    program = ("import subprocess, sys, time\n"
               f"subprocess.Popen([sys.executable, '-c', {HOLDER!r}], start_new_session=True)\n"
               "time.sleep(1000)")
    terminal.type(f"{wrap} python3 -c {shlex.quote(program)} &\n")
    terminal.expect("holder")
    asleep()
    pids = tree(terminal.pid)[1:]
    terminal.line("kill -9 %1")
    all_end(pids)


def hangup(terminal, wrap):
    python(terminal, wrap)
    asleep()
    pids = tree(terminal.pid)
    os.close(terminal.descriptor)
    all_end(pids[1:])


def pipeline(terminal, wrap):
    terminal.type(wrap + " python3 -q 2>&1 | cat\n")
    terminal.type("y = bytearray(b'k') * 20_000_000\nprint('le', len(y))\n")
    terminal.expect("le 20000000")
    asleep()
    terminal.type("print('el', y[3])\n")
    terminal.expect("el 107")
    terminal.type("\x04")
    terminal.prompt()


def script(terminal, wrap):
    """Ctrl-C ends a script and the program that it runs."""
    program = ("import time; x = bytearray(b'k') * 20_000_000; print('rea' + 'dy', flush=True); "
               "time.sleep(1000)")
    path = os.environ["WRAP_LOG"] + ".sh"
    with open(path, "w") as file:
        file.write(f"{wrap} python3 -c {shlex.quote(program)}\necho aft''er\n")
    terminal.type(f"bash {path}\n")
    terminal.expect("ready")
    asleep()
    terminal.type("\x03")
    terminal.expect("KeyboardInterrupt")
    terminal.prompt()
    terminal.quiet(0.5, "after")


def main():
    scenario, *words = sys.argv[1:]
    terminal = Terminal(["bash", "--norc", "-i"])
    try:
        terminal.prompt()
        globals()[scenario](terminal, shlex.join(words))
    except Wrong as wrong:
        terminal.read(0.5)
        sys.exit(f"{scenario}: {wrong}\nshown: {terminal.shown[-3000:]!r}\nlog: {log()[-3000:]}")
    finally:
        for pid in reversed(tree(terminal.pid)):
            try:
                os.kill(pid, 9)
            except OSError:
                pass


main()
