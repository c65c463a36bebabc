#!/usr/bin/env python3
"""How long does a client wait for a chain of hibernated servers, with and without `wake_with`? Each server asks the
next one before it answers."""
import argparse
import os
import socket
import sys
import time

from bench import Daemon, figures, free_port, machine

# The state is small objects, so that the image is compressed as real ones are.
SERVER = """
import socket, sys
port, following, megabytes = map(int, sys.argv[1:])
state = [{"key": f"note {n}", "text": str(n) * 20} for n in range(megabytes * 2600)]
listener = socket.create_server(("127.0.0.1", port))
while True:
    line, _ = listener.accept()
    with line:
        line.recv(64)
        seen = sum(len(note["text"]) for note in state[::50])
        if following:
            with socket.create_connection(("127.0.0.1", following)) as other:
                other.sendall(b"?")
                other.recv(64)
        line.sendall(b"%d" % seen)
"""


def ask(port):
    """Milliseconds from before the connection to the answer of all servers."""
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 60) as line:
        line.sendall(b"?")
        if not line.recv(64):
            raise RuntimeError("hung up")
    return (time.monotonic() - start) * 1000


def chain(length, megabytes, resume, wakes):
    ports = [free_port() for _ in range(length)]
    workers = {}
    for place, port in enumerate(ports):
        following = ports[place + 1] if place + 1 < length else 0
        workers[f"s{place}"] = {
            "command": [sys.executable, "-c", SERVER, str(port), str(following), str(megabytes)],
            "readiness": {"tcp": port}}
        if wakes and following:
            workers[f"s{place}"]["wake_with"] = [f"s{place + 1}"]
    daemon = Daemon({
        "policy_overrides": {
            "pressure": {"warning": "never", "urgent": "never", "critical": {"available_below": "1%"}},
            "foreground": {"max": "unlimited"}, "background": {"suspend_after": "1h"},
            "hibernate": {"after": "never", "cooldown": "0s", "max_footprint": "1GB", "resume": resume,
                          "only_if_faster_than_relaunch": False}},
        "workers": workers})
    while any(daemon.worker(name)["state"] != "foreground" for name in workers):
        time.sleep(0.05)
    ask(ports[0])
    return daemon, ports[0], list(workers)


def sleep(daemon, names, verb):
    time.sleep(0.1)
    for name in reversed(names):
        daemon.ask(verb, name)
    time.sleep(0.3)
    states = [daemon.worker(name)["state"] for name in names]
    assert set(states) == {verb.rstrip("e") + "ed"}, states


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--length", type=int, default=3)
    options.add_argument("--megabytes", type=int, default=40)
    options.add_argument("--resume", choices=["eager", "lazy"], default="eager")
    options = options.parse_args()
    print(machine())
    daemons = {wakes: chain(options.length, options.megabytes, options.resume, wakes) for wakes in (False, True)}
    try:
        footprint = daemons[True][0].worker("s0")["footprint"]
        print(f"{options.length} python servers of {footprint >> 20} MB, {options.resume}, ms to the answer:")
        times = {}
        for _ in range(options.rounds):
            for verb in ("hibernate", "suspend", None):
                for wakes, (daemon, port, names) in daemons.items():
                    if verb:
                        sleep(daemon, names, verb)
                    times.setdefault((verb, wakes), []).append(ask(port))
        for (verb, wakes), values in times.items():
            print(f"  {verb or 'awake':10} {'with' if wakes else 'without':8} wake_with  {figures(values)}")
    finally:
        for daemon, _, _ in daemons.values():
            daemon.close()


if __name__ == "__main__":
    main()
