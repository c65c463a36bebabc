#!/usr/bin/env python3
"""Serves `dormouse metrics` on loopback, has a real Prometheus scrape it, and evaluates expressions there.

metrics_scrape.py DIRECTORY FORMAT DORMOUSE SOCKET < expressions

One expression a line. For each it prints `COUNT EXPRESSION`, the number of series that Prometheus answers, or
`error: TEXT EXPRESSION`. Everything that it starts has ended when it ends.
"""
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

directory, form, dormouse, control = sys.argv[1:5]
TYPES = {
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "prometheus": "text/plain; version=0.0.4; charset=utf-8",
}


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = subprocess.run(
            [dormouse, "metrics", "--format", form, "--socket", control], capture_output=True)
        self.send_response(200 if page.returncode == 0 else 503)
        self.send_header("Content-Type", TYPES[form])
        self.end_headers()
        self.wfile.write(page.stdout)

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def query(port, expression):
    data = urllib.parse.urlencode({"query": expression}).encode()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query", data, timeout=60) as answer:
            return json.load(answer)["data"]["result"], None
    except urllib.error.HTTPError as error:
        return None, json.load(error)["error"]
    except OSError as error:
        return None, str(error)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    configuration = f"{directory}/prometheus.yml"
    with open(configuration, "w") as file:
        json.dump({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{
                "job_name": "dormouse",
                "static_configs": [{"targets": [f"127.0.0.1:{server.server_address[1]}"]}],
            }],
        }, file)
    with open(f"{directory}/prometheus.log", "w") as log:
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={directory}/data",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while True:
            found, problem = query(port, 'dormouse_up == 1 and on () up{job="dormouse"} == 1')
            if found:
                break
            if time.monotonic() > deadline or prometheus.poll() is not None:
                sys.exit(f"nothing was scraped: {problem}\n{open(f'{directory}/prometheus.log').read()}")
            time.sleep(0.2)
        for line in sys.stdin:
            expression = line.rstrip("\n")
            found, problem = query(port, expression)
            print(f"error: {problem} {expression}" if problem else f"{len(found)} {expression}")
    finally:
        prometheus.terminate()
        prometheus.wait()
        server.shutdown()


main()
