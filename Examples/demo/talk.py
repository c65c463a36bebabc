"""Clients that stay connected: one to an HTTP worker, one to redis. Plain sockets, so that it is
certain that the connection is the same one before and after."""
import hashlib
import socket
import time

KEYS = [f"key-{n}" for n in range(20000)]


class Line:
    """A connection that reads replies; what they look like, the subclasses know."""

    def __init__(self, port, patience=20.0):
        end = time.monotonic() + patience
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
                break
            except ConnectionRefusedError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.002)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb")
        self.local_port = self.socket.getsockname()[1]

    def close(self):
        self.stream.close()
        self.socket.close()


class Web(Line):
    def get(self, path):
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        length = 0
        status = self.stream.readline()
        if not status:
            raise ConnectionError("the worker closed the connection")
        for header in iter(self.stream.readline, b"\r\n"):
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return self.stream.read(length).decode()

    def visit(self):
        """How often it was visited, this one included."""
        return int(self.get("/").split()[-1])

    def digest(self):
        return self.get("/digest")

    def fill(self):
        pass


class Redis(Line):
    def send(self, *words):
        request = [b"*%d\r\n" % len(words)]
        request += [b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words]
        self.socket.sendall(b"".join(request))

    def command(self, *words):
        self.send(*words)
        return self.reply()

    def reply(self):
        line = self.stream.readline()
        if not line:
            raise ConnectionError("redis closed the connection")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"$":
            return None if rest == "-1" else self.stream.read(int(rest) + 2)[:-2].decode()
        if kind == b"-":
            raise ConnectionError(f"redis says: {rest}")
        return rest

    def visit(self):
        return int(self.command("INCR", "visits"))

    def digest(self):
        sha = hashlib.sha256()
        self.send("MGET", *KEYS)
        for _ in range(int(self.reply())):
            sha.update((self.reply() or "-").encode())
        return sha.hexdigest()

    def fill(self):
        pairs = []
        for n, key in enumerate(KEYS):
            pairs += [key, f"value {n * 2654435761 % (1 << 32)} " * 5]
        self.command("MSET", *pairs)
