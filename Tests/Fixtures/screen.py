#!/usr/bin/env python3
"""screen.py COLUMNS ROWS STEPS -- COMMAND...: runs COMMAND on a terminal, types, and looks at its screen. Ends with 0,
or prints what was wrong and the screen.

STEPS is a file, a step on each line:

    see REGEX       waits until the screen's text has it (^ and $ are the ends of a line)
    miss REGEX      waits until the screen's text doesn't have it
    type TEXT       types it; \\x1b, \\n and the like are escapes
    resize C R      changes the terminal's size
    signal N PID    sends a signal to another process
    run COMMAND     runs a command of the shell
    end CODE        waits for COMMAND's end with that exit code; it must have left the alternate screen

A text that the terminal would wrap, or that isn't in the sequences below, is wrong in any case."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

PATIENCE = 60


class Wrong(Exception):
    pass


class Screen:
    def __init__(self, columns, rows):
        self.clear(columns, rows)
        self.rest = ""
        self.alternate = False
        self.tolerant = 0  # until then

    def clear(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines = [[" "] * columns for _ in range(rows)]
        self.x = self.y = 0

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)

    def write(self, text):
        text = self.rest + text
        self.rest = ""
        while text:
            if text[0] == "\x1b":
                found = re.match(r"\x1b\[(\??[0-9;]*)([A-Za-z])", text)
                if not found:
                    if len(text) < 12:
                        self.rest = text
                        return
                    raise Wrong(f"an unknown sequence: {text[:20]!r}")
                self.sequence(*found.groups())
                text = text[found.end():]
                continue
            self.put(text[0])
            text = text[1:]

    def put(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\n":
            self.y += 1
            if self.y >= self.rows:
                if self.alternate and time.monotonic() > self.tolerant:
                    raise Wrong("the screen would scroll")
                self.y = self.rows - 1
        elif ord(character) < 32:
            raise Wrong(f"a control character: {character!r}")
        else:
            if self.x >= self.columns:
                if self.alternate and time.monotonic() > self.tolerant:
                    raise Wrong(f"line {self.y + 1} is wider than the screen")
                return
            if self.y < self.rows:
                self.lines[self.y][self.x] = character
            self.x += 1

    def sequence(self, parameters, final):
        if final == "H" and not parameters:
            self.x = self.y = 0
        elif final == "K" and not parameters:
            self.lines[self.y][self.x:] = [" "] * (self.columns - self.x)
        elif final == "J" and not parameters:
            self.lines[self.y][self.x:] = [" "] * (self.columns - self.x)
            for y in range(self.y + 1, self.rows):
                self.lines[y] = [" "] * self.columns
        elif parameters == "?1049":
            self.alternate = final == "h"
            self.clear(self.columns, self.rows)
        elif not (final == "m" or parameters == "?25"):
            raise Wrong(f"an unknown sequence: {parameters}{final}")


class Run:
    def __init__(self, columns, rows, command):
        self.screen = Screen(columns, rows)
        ready, go = os.pipe()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.read(ready, 1)  # until the terminal has its size
            os.execvp(command[0], command)
        self.size(columns, rows)
        os.write(go, b"x")
        self.bytes = b""
        self.closed = False

    def size(self, columns, rows):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds=0.2):
        if self.closed or not select.select([self.terminal], [], [], seconds)[0]:
            return
        try:
            more = os.read(self.terminal, 65536)
        except OSError:  # the command has closed it
            more = b""
        self.closed = not more
        self.bytes += more
        # The beginning of a character stays for later.
        try:
            text, self.bytes = self.bytes.decode(), b""
        except UnicodeDecodeError as error:
            text, self.bytes = self.bytes[:error.start].decode(), self.bytes[error.start:]
        self.screen.write(text)

    def until(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end or self.closed:
                raise Wrong(f"{what}{': it has ended' if self.closed else ''}")
            self.read()

    def step(self, verb, rest):
        if verb == "see":
            self.until(f"no {rest!r}", lambda: re.search(rest, self.screen.text(), re.MULTILINE))
        elif verb == "miss":
            self.until(
                f"still {rest!r}", lambda: not re.search(rest, self.screen.text(), re.MULTILINE))
        elif verb == "type":
            os.write(self.terminal, rest.encode().decode("unicode_escape").encode())
        elif verb == "resize":
            columns, rows = map(int, rest.split())
            self.screen.clear(columns, rows)
            # What is on its way was drawn for the old size, and a busy machine takes its time.
            self.screen.tolerant = time.monotonic() + 20
            self.size(columns, rows)
        elif verb == "signal":
            number, pid = map(int, rest.split())
            os.kill(pid, number)
        elif verb == "run":
            subprocess.run(rest, shell=True, check=True)
        elif verb == "end":
            end = time.monotonic() + PATIENCE
            while not self.closed:
                self.read()
                if time.monotonic() > end:
                    raise Wrong("it doesn't end")
            if self.screen.alternate:
                raise Wrong("it has left the terminal on the alternate screen")
            status = os.waitpid(self.pid, 0)[1]
            self.pid = 0
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            if code != int(rest):
                raise Wrong(f"it ended with {code}, not {rest}")
        else:
            raise Wrong(f"no step: {verb}")


def main():
    columns, rows, steps, dashes, *command = sys.argv[1:]
    assert dashes == "--"
    run = Run(int(columns), int(rows), command)
    try:
        for number, line in enumerate(open(steps).read().splitlines(), 1):
            verb, _, rest = line.partition(" ")
            try:
                run.step(verb, rest)
            except Wrong as wrong:
                sys.exit(f"step {number}, {line}: {wrong}\n{run.screen.text()}")
    finally:
        if run.pid:
            os.kill(run.pid, 9)


main()
