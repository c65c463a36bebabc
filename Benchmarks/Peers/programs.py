"""The workers of peers.py and trim.py: each holds a state, answers `light` from a little of it and `all` from all of it.
`sum` is a checksum of its state."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("light", "all")
WORKER = os.path.join(HERE, "objects.py")


class HTTP:
    """One connection to a worker. A request is sent, its first byte is received, then the rest."""
    requests = {kind: f"GET {path} HTTP/1.1\r\nHost: peers\r\n\r\n".encode()
                for kind, path in (("light", "/"), ("all", "/all"), ("sum", "/sum"))}
    first = b"H"

    def __init__(self, port):
        end = time.monotonic() + 60
        while True:
            try:
                self.line = socket.create_connection(("127.0.0.1", port), 60)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.002)
        self.line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, kind):
        self.line.sendall(self.requests[kind])

    def first_byte(self):
        if self.line.recv(1) != self.first:
            raise RuntimeError("the connection has ended")

    def rest(self):
        """The body of the remaining answer; its end is known by its length."""
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.line.recv(65536)
        head, body = answer.split(b"\r\n\r\n", 1)
        if b" 200 " not in head:
            raise RuntimeError(head.decode())
        length = int(head.lower().split(b"content-length:")[1].split(b"\r")[0])
        while len(body) < length:
            body += self.line.recv(65536)
        return body

    def ask(self, kind):
        """Milliseconds to the first byte."""
        start = time.perf_counter()
        self.send(kind)
        self.first_byte()
        passed = (time.perf_counter() - start) * 1000
        self.rest()
        return passed

    def checksum(self):
        self.send("sum")
        self.first_byte()
        return self.rest()


class Redis(HTTP):
    """`DEBUG DIGEST` reads every key and value."""
    requests = {"light": b"STRLEN key:7\r\n", "all": b"DEBUG DIGEST\r\n", "sum": b"DEBUG DIGEST\r\n"}
    first = b":"

    def send(self, kind):
        self.first = b":" if kind == "light" else b"+"
        super().send(kind)

    def rest(self):
        answer = b""
        while not answer.endswith(b"\r\n"):
            answer += self.line.recv(65536)
        return answer


class Program:
    """`sizes`: what `--size` means for it, and what is measured without it."""
    connection = HTTP

    def __init__(self, name, unit, sizes, tool, words):
        self.name, self.unit, self.sizes, self.tool, self.words = name, unit, sizes, tool, words

    def is_there(self):
        return shutil.which(self.tool) is not None

    def command(self, size, port):
        return [word.format(size=size, port=port) for word in self.words]

    def connect(self, port, size):
        return self.connection(port)

    def remove(self):
        """What it has left behind."""


class RedisProgram(Program):
    connection = Redis

    def connect(self, port, size):
        """A server that has just been started has no keys."""
        line = Redis(port)
        line.line.sendall(f"DEBUG POPULATE {size} key 100\r\n".encode())
        if line.line.recv(5) != b"+OK\r\n":
            raise RuntimeError("redis can't be filled")
        return line


class CompiledProgram(Program):
    """`{directory}` in its words is where the compiler has written it."""
    directory = None

    def __init__(self, name, unit, sizes, tool, compiler, words):
        super().__init__(name, unit, sizes, tool, words)
        self.compiler = compiler

    def command(self, size, port):
        if self.directory is None:
            self.directory = tempfile.TemporaryDirectory(prefix="dormouse-peers-")
            os.chmod(self.directory.name, 0o755)  # The worker may be another user's.
            subprocess.run([word.format(directory=self.directory.name) for word in self.compiler], check=True)
        return [word.format(size=size, port=port, directory=self.directory.name) for word in self.words]

    def remove(self):
        if self.directory is not None:
            self.directory.cleanup()
            self.directory = None


def jvm(name, collector):
    return CompiledProgram(name, f"objects; {collector}", [20000, 300000], "javac",
                           ["javac", "-d", "{directory}", os.path.join(HERE, "Objects.java")],
                           ["java", "-Xmx256m", f"-XX:+Use{collector}", "-Dsun.net.httpserver.nodelay=true",
                            "-Dsun.net.httpserver.idleInterval=100000", "-cp", "{directory}", "Objects", "{size}", "{port}"])


PROGRAMS = [
    Program("python", "objects; an HTTP server with threads", [13000, 110000, 375000], sys.executable,
            [sys.executable, WORKER, "{size}", "{port}"]),
    Program("asyncio", "objects; python's event loop", [13000, 110000], sys.executable,
            [sys.executable, os.path.join(HERE, "objects_asyncio.py"), "{size}", "{port}"]),
    Program("node", "objects", [10000, 200000], "node",
            ["node", os.path.join(HERE, "objects.js"), "{size}", "{port}"]),
    RedisProgram("redis", "keys with values of 100 bytes", [10000, 200000], "redis-server",
                 ["redis-server", "--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                  "--enable-debug-command", "local", "--loglevel", "warning"]),
    Program("ruby", "objects; a thread for each connection", [13000, 200000], "ruby",
            ["ruby", os.path.join(HERE, "objects.rb"), "{size}", "{port}"]),
    jvm("jvm", "G1GC"),
    jvm("jvm-serial", "SerialGC"),
    CompiledProgram("go", "objects", [20000, 600000], "go",
                    ["go", "build", "-o", "{directory}/objects", os.path.join(HERE, "objects.go")],
                    ["{directory}/objects", "{size}", "{port}"]),
    CompiledProgram("c", "MB of random bytes", [4, 15, 45, 200], "cc",
                    ["cc", "-O2", "-pthread", "-o", "{directory}/blob", os.path.join(HERE, "..", "blob.c")],
                    ["{directory}/blob", "{port}", "{size}"]),
]
