#!/usr/bin/env python3
"""Which policy, and which order of termination? The shipped ones over three generated traces.

python3 Benchmarks/policies.py [--workers 1000] [--hours 24] [--binary PATH] [--output DIR]

Needs `make build`."""
import argparse, os, subprocess, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
POLICIES = ["ios-5", "iphone-os-3", "server", "android", "developer"]
TRACES = ["daily", "bursts", "flapping"]
ORDERS = ["band,footprint", "band,regret"]


def simulate(binary, arguments):
    began = time.monotonic()
    result = subprocess.run([binary, "simulate", *arguments], text=True, capture_output=True)
    if result.returncode:
        raise SystemExit(f"dormouse simulate {' '.join(arguments)}: {result.stderr}")
    print(f"`dormouse simulate {' '.join(a for a in arguments if a != '--markdown')}`: "
          f"{time.monotonic() - began:.1f} s\n\n{result.stdout}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", default="1000")
    parser.add_argument("--hours", default="24")
    parser.add_argument("--binary", default=os.path.join(ROOT, ".build/release/dormouse"))
    parser.add_argument("--output", help="a directory for the plots")
    options = parser.parse_args()
    files = [f"{ROOT}/Policies/{name}.yaml" for name in POLICIES]
    files = [path for path in files if os.path.exists(path)]
    for trace in TRACES:
        common = ["--generate", trace, "--workers", options.workers, "--hours", options.hours, "--markdown"]
        plot = ["--svg", f"{options.output}/{trace}.svg"] if options.output else []
        print(f"## {trace}\n", flush=True)
        simulate(options.binary, common + ["--policy", ",".join(os.path.relpath(f) for f in files)] + plot)
        # Orders only count for those who terminate.
        ending = ",".join(os.path.relpath(f"{ROOT}/Policies/{name}.yaml") for name in ["ios-5", "iphone-os-3"])
        simulate(options.binary, common + ["--policy", ending] + [x for o in ORDERS for x in ("--order", o)])


if __name__ == "__main__":
    main()
