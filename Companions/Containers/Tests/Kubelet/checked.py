"""checked.py PORT ADDRESS: server.py, and at port 8081 another server for probes alone."""
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


threading.Thread(target=ThreadingHTTPServer((sys.argv[2], 8081), Handler).serve_forever, daemon=True).start()
exec(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "server.py")).read())
