#!/usr/bin/env python3
"""A server with health checks: health_http.py PORT HEALTH_PORT DIRECTORY

GET /count at PORT counts, and answers the count. GET /healthz at PORT or HEALTH_PORT answers `ok`, or
503 while DIRECTORY holds a file `sick`, which every start removes. DIRECTORY/checks grows by a byte with
each health check that was served here."""
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, health_port, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
sick = os.path.join(directory, "sick")
count = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        global count
        status, text = 200, "ok"
        if self.path == "/healthz":
            with open(os.path.join(directory, "checks"), "a") as file:
                file.write(".")
            if os.path.exists(sick):
                status, text = 503, "sick"
        else:
            count += 1
            text = str(count)
        body = (text + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


if os.path.exists(sick):
    os.unlink(sick)
health = Server(("127.0.0.1", health_port), Handler)
threading.Thread(target=health.serve_forever, daemon=True).start()
Server(("127.0.0.1", port), Handler).serve_forever()
