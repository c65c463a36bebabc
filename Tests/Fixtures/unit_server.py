#!/usr/bin/env python3
"""A server as a service manager runs it: `unit_server.py PORT FILE`.

GET / counts, and answers the count and whether its memory is intact. SIGHUP reloads: it appends
`reloaded` to FILE. SIGTERM saves: it appends `saved COUNT INTACT` and ends."""
import os
import signal
import socket
import sys

PORT, FILE = int(sys.argv[1]), sys.argv[2]
HEAP = [str(i) * 40 for i in range(40000)]
count = 0


def intact():
    return all(text == str(i) * 40 for i, text in enumerate(HEAP))


def append(line):
    with open(FILE, "a") as file:
        file.write(line + "\n")


def save(*_):
    append(f"saved {count} {intact()}")
    os._exit(0)


signal.signal(signal.SIGTERM, save)
signal.signal(signal.SIGHUP, lambda *_: append("reloaded"))
server = socket.create_server(("127.0.0.1", PORT))
while True:
    client, _ = server.accept()
    with client:
        if not client.recv(4096):
            continue
        count += 1
        body = f"{count} {intact()}\n"
        client.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
