#!/usr/bin/env python3
"""pty_run.py COLUMNS TEXT KEYS -- COMMAND...: runs COMMAND on a terminal of COLUMNS columns, types KEYS
(\\x03: Ctrl-C) once TEXT has appeared (both may be empty), prints all that the terminal has shown, and
ends with COMMAND's exit code, or 128 + the signal that ended it."""
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time


def main():
    columns, text, keys, dashes, *command = sys.argv[1:]
    assert dashes == "--"
    keys = keys.encode().decode("unicode_escape").encode()
    ready, go = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "vt100"
        os.read(ready, 1)  # until the terminal has its size
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, int(columns), 0, 0))
    os.write(go, b"x")
    shown = b""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            more = os.read(terminal, 65536)
        except OSError:  # the command has closed it
            break
        shown += more
        if keys and text.encode() in shown:
            os.write(terminal, keys)
            keys = b""
    if time.monotonic() >= end:
        os.kill(pid, 9)
    status = os.waitpid(pid, 0)[1]
    sys.stdout.write(shown.decode(errors="replace").replace("\r\n", "\n"))
    sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


main()
