#!/usr/bin/env python3
"""The worker of docs/worker-protocol.md's transcript. Writes down both sides' lines.

    transcript.py LOG
"""
import ctypes, json, os, socket, sys

log = open(sys.argv[1], "w", buffering=1)
daemon = socket.socket(socket.AF_UNIX)
daemon.connect(os.environ["DORMOUSE_WORKER_SOCKET"])
cache = [os.urandom(1 << 20) for _ in range(8)]


def say(line):
    log.write("→ " + line + "\n")
    daemon.sendall(line.encode() + b"\n")


for line in daemon.makefile(encoding="utf-8"):
    log.write("← " + line)
    message = json.loads(line)
    if message["type"] == "hello":
        say('{"type":"beginTask","task":"index","limitSeconds":30}')
        say('{"type":"endTask","task":"index"}')
        say('{"type":"snapshot","text":"3 entries, the last of today"}')
        say('{"type":"ready"}')
    if message["type"] in ("didEnterBackground", "memoryWarning"):
        cache.clear()
        ctypes.CDLL(None).malloc_trim(0)
    if "deadlineSeconds" in message:
        say('{"type":"done","id":%d}' % message["id"])
