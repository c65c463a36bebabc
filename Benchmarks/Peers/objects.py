#!/usr/bin/env python3
"""The worker of peers.py: an HTTP server that holds a number of small objects. `/` touches few of them, `/all` all."""
import http.server
import json
import sys

OBJECTS = [{"number": n, "text": f"value {n}"} for n in range(int(sys.argv[1]))]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        total = sum(one["number"] for one in OBJECTS) if self.path == "/all" else OBJECTS[-1]["number"]
        body = json.dumps([len(OBJECTS), total]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
