"""health.py PORT: answers each call of gRPC as a service that is healthy, for a probe by `grpc`, and keeps 20 MB."""
import random
import socketserver
import struct
import sys

random.seed(7)
memory = bytearray(random.randbytes(20 << 20))
HEADERS, DATA, SETTINGS, PING = 1, 0, 4, 6
# HPACK, each field as a literal that isn't indexed; `:status 200` has a number.
START = b"\x88" + b"\x00\x0ccontent-type\x10application/grpc"
TRAILERS = b"\x00\x0bgrpc-status\x010"
SERVING = struct.pack(">BI", 0, 2) + b"\x08\x01"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class Call(socketserver.StreamRequestHandler):
    def handle(self):
        self.rfile.read(24)
        self.wfile.write(frame(SETTINGS, 0, 0))
        while header := self.rfile.read(9):
            kind, flags, stream = struct.unpack(">BBI", header[3:])
            payload = self.rfile.read(int.from_bytes(header[:3], "big"))
            if kind == SETTINGS and not flags & 1:
                self.wfile.write(frame(SETTINGS, 1, 0))
            elif kind == PING and not flags & 1:
                self.wfile.write(frame(PING, 1, 0, payload))
            elif kind in (HEADERS, DATA) and flags & 1:
                self.wfile.write(frame(HEADERS, 4, stream, START) + frame(DATA, 0, stream, SERVING)
                                 + frame(HEADERS, 5, stream, TRAILERS))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True


Server(("0.0.0.0", int(sys.argv[1])), Call).serve_forever()
