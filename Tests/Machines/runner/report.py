"""The table of machines and checks, as it grows and at the end, in text and as results.json."""
import json
import threading


class Table:
    def __init__(self, logs, deb, accel):
        self._logs, self._lock = logs, threading.Lock()
        self._document = {"package": str(deb), "accelerator": accel.text, "machines": {}, "cells": []}
        self.failed = False

    def machine(self, machine, seconds, facts):
        with self._lock:
            self._document["machines"][machine.name] = {"boot": round(seconds, 1), "kernel": facts[0], "systemd": facts[1],
                                                        "controllers": facts[2]}
            print(f"{machine.name}: Linux {facts[0]}, {facts[1]}, booted in {seconds:.0f} s", flush=True)

    def add(self, machine, cell, verdict, seconds, detail):
        """`cell` is nil: the machine itself failed."""
        with self._lock:
            self.failed = self.failed or verdict == "FAIL"
            name = cell.name if cell else "(machine)"
            self._document["cells"].append({"machine": machine.name, "check": name, "verdict": verdict,
                                            "seconds": round(seconds, 1), "detail": detail})
            (self._logs / "results.json").write_text(json.dumps(self._document, indent=1) + "\n")
            print(f"{machine.name:20} {name:28} {verdict:8} {seconds:6.0f} s  {detail[:200]}", flush=True)

    def print(self):
        machines = list(dict.fromkeys(c["machine"] for c in self._document["cells"]))
        checks = list(dict.fromkeys(c["check"] for c in self._document["cells"]))
        cell = {(c["machine"], c["check"]): c for c in self._document["cells"]}
        width = max(map(len, checks), default=5) + 2
        lines = ["check".ljust(width) + "".join(m.ljust(max(len(m), 14) + 2) for m in machines)]
        for check in checks:
            line = check.ljust(width)
            for machine in machines:
                found = cell.get((machine, check))
                text = f"{found['verdict']} {found['seconds']:.0f} s" if found else "-"
                line += text.ljust(max(len(machine), 14) + 2)
            lines.append(line.rstrip())
        text = "\n".join(lines)
        (self._logs / "table.txt").write_text(text + "\n")
        print("\n" + text)
        for c in self._document["cells"]:
            if c["verdict"] != "ok":
                print(f"{c['verdict']} {c['machine']} {c['check']}: {c['detail']}")
