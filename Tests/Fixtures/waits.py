"""A worker for Benchmarks/chaos.py: starts programs (vfork), waits with time-outs, and waits for changes of
files (inotify). Lines over TCP; each answer depends on nothing but the commands, so that a twin gives the same.

    spawn N      starts a program N times, by posix_spawn or vfork
    wait MS      waits MS milliseconds each in poll, select, epoll, a condition and a sleep
    watch NAME   has another process write a file, and waits until inotify reports it
    sum          a checksum over all that has happened
"""
import argparse
import ctypes
import hashlib
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

IN_CLOSE_WRITE = 8


class Watcher:
    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="dormouse-waits-")
        libc = ctypes.CDLL(None, use_errno=True)
        self.events = libc.inotify_init1(0)
        if libc.inotify_add_watch(self.events, self.directory.encode(), IN_CLOSE_WRITE) < 0:
            sys.exit("inotify_add_watch failed")

    def wait_for(self, name):
        path = os.path.join(self.directory, name)
        writer = subprocess.Popen(["sh", "-c", f"sleep 0.05; echo x > '{path}'"])
        while True:
            data = os.read(self.events, 65536)
            names = []
            while data:
                length = struct.unpack_from("I", data, 12)[0]
                names.append(data[16:16 + length].rstrip(b"\0").decode())
                data = data[16 + length:]
            if name in names:
                break
        writer.wait()
        os.unlink(path)


def wait(seconds):
    select.poll().poll(seconds * 1000)
    select.select([], [], [], seconds)
    with select.epoll() as epoll:
        epoll.poll(seconds)
    condition = threading.Condition()
    with condition:
        condition.wait(seconds)
    time.sleep(seconds)


def serve(line, watcher, state):
    verb, _, rest = line.partition(" ")
    if verb == "sum":
        return state.hexdigest()
    if verb == "spawn":
        codes = [subprocess.run(["true"], close_fds=index % 2 == 0).returncode
                 for index in range(int(rest))]
        answer = f"spawned {codes}"
    elif verb == "wait":
        wait(int(rest) / 1000)
        answer = f"waited {rest}"
    elif verb == "watch":
        watcher.wait_for(rest)
        answer = f"saw {rest}"
    else:
        return "what?"
    state.update(answer.encode())
    return answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    watcher, state, ballast = Watcher(), hashlib.sha256(), os.urandom(4 << 20)
    state.update(b"waits")
    listener = socket.create_server(("127.0.0.1", options.port))
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("r") as lines:
            for line in lines:
                connection.sendall((serve(line.strip(), watcher, state) + "\n").encode())
    del ballast


main()
