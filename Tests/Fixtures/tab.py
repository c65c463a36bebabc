#!/usr/bin/env python3
"""tab.py SHELL SETUP LINE WORD...: types LINE and Tab in a shell on a terminal of its own, after the
commands SETUP, and ends with 0 when all the words have appeared. Prints what the terminal showed."""
import os
import pty
import select
import signal
import sys
import time

SHELLS = {"zsh": ["zsh", "-f", "-i"], "fish": ["fish", "--no-config", "-i"],
          "bash": ["bash", "--norc", "-i"]}


def main():
    shell, setup, line, *words = sys.argv[1:]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="vt100", PS1="$ ", COLUMNS="100", LINES="40")
        os.execvp(SHELLS[shell][0], SHELLS[shell])
    shown = b""

    def wait(done):
        nonlocal shown
        end = time.monotonic() + 60
        while not done() and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    shown += os.read(terminal, 65536)
                except OSError:
                    break
        return done()

    # In two pieces: the echo of the command must not be taken for its output.
    os.write(terminal, f"{setup}\necho rea''dy\n".encode())
    found = wait(lambda: b"ready" in shown)
    before = len(shown)
    os.write(terminal, line.encode() + b"\t\t")
    found = found and wait(lambda: all(word.encode() in shown[before:] for word in words))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    print(shown.decode(errors="replace"))
    sys.exit(0 if found else 1)


main()
