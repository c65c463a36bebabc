#!/usr/bin/env python3
"""A worker that sheds well, in twenty lines: docs/worker-protocol.md. Try it with

    dormouse run cache -- python3 worker.py
    dormouse warn cache
"""
import contextlib, ctypes, json, os, socket, time

cache = {}

def fill():
    cache.update((key, os.urandom(4096)) for key in range(2048))  # 8 MB that can be made again

def answer(daemon, message):
    if message["type"] in ("didEnterBackground", "memoryWarning"):
        cache.clear()
        ctypes.CDLL(None).malloc_trim(0)  # what the allocator keeps isn't given back
    elif message["type"] == "didEnterForeground":
        fill()
    if "deadlineSeconds" in message:
        daemon.sendall(b'{"type":"done","id":%d}\n' % message["id"])

fill()
while True:  # a new daemon listens at the same path
    # The daemon may end in the middle of an answer.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(os.environ["DORMOUSE_WORKER_SOCKET"])
        daemon.sendall(b'{"type":"ready"}\n{"type":"snapshot","text":"a cache, in python"}\n')
        for line in daemon.makefile():
            answer(daemon, json.loads(line))
    time.sleep(1)
