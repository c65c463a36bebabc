#!/usr/bin/env python3
"""How long does a client wait for a sleeping worker? The client only connects; no verb wakes the worker."""
import argparse
import os
import socket
import sys
import time

from bench import ROOT, Daemon, figures, free_port, machine

SERVER = os.path.join(ROOT, "Tests", "Fixtures", "http_state.py")
REQUEST = b"GET /count HTTP/1.1\r\nHost: bench\r\n\r\n"


def connect(port):
    line = socket.create_connection(("127.0.0.1", port), 30)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


def until_first_byte(begin):
    """Milliseconds from before `begin`, which returns the connection."""
    start = time.monotonic()
    line = begin()
    line.sendall(REQUEST)
    if not line.recv(1):
        raise RuntimeError("hung up")
    passed = (time.monotonic() - start) * 1000
    time.sleep(0.02)
    line.recv(65536)
    return passed


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--megabytes", type=int, nargs="+", default=[8, 60])
    options = options.parse_args()
    print(machine())
    for size in options.megabytes:
        port = free_port()
        daemon = Daemon({
            "policy_overrides": {
                "background": {"suspend_after": "1h"},
                "hibernate": {"after": "never", "cooldown": "0s", "max_footprint": "1GB",
                              "only_if_faster_than_relaunch": False}},
            "workers": {"web": {
                "command": [sys.executable, SERVER, "--port", str(port), "--megabytes", str(size)],
                "readiness": {"tcp": port}}}})
        try:
            while daemon.worker("web")["state"] != "foreground":
                time.sleep(0.05)
            times = {}
            footprint = 0
            kept = connect(port)
            until_first_byte(lambda: kept)
            for _ in range(options.rounds):
                for state, verb in (("running", None), ("suspended", "suspend"),
                                    ("hibernated", "hibernate")):
                    for way, begin in (("connect", lambda: connect(port)),
                                       ("open connection", lambda: kept)):
                        if verb:
                            footprint = max(footprint, daemon.worker("web")["footprint"])
                            daemon.ask(verb, "web")
                            time.sleep(0.05)
                            assert daemon.worker("web")["state"] == state
                        times.setdefault((state, way), []).append(until_first_byte(begin))
            print(f"python, {size} MB of state, {footprint >> 20} MB footprint, ms to the first byte:")
            for (state, way), values in times.items():
                print(f"  {state:10}  {way:15}  {figures(values)}")
        finally:
            daemon.close()


if __name__ == "__main__":
    main()
