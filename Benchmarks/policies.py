#!/usr/bin/env python3
"""Which policy, and which order of termination? The shipped ones over three generated traces.

python3 Benchmarks/policies.py [--workers 1000] [--hours 24] [--seeds 1,2,3] [--binary PATH] [--output DIR]

Needs `make build`."""
import argparse, os, subprocess, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
POLICIES = ["standard", "ios-5", "iphone-os-3", "server", "android", "developer"]
TRACES = ["daily", "bursts", "flapping"]
ORDERS = ["band,footprint", "band,regret"]
# The two that terminate often enough for the order to matter.
ORDERED = ["ios-5", "iphone-os-3"]
# One change each, to see whether it is the reason that it is taken for.
VARIED = [
    ("ios-5", "max_footprint: 16MB", "max_footprint: unlimited"),
    ("ios-5", "daily_writes: 10GB", "daily_writes: 1000GB"),
    ("android", "suspend_after: 10s", "suspend_after: 60s"),
]


def simulate(binary, arguments, isTold=True):
    began = time.monotonic()
    result = subprocess.run([binary, "simulate", *arguments, "--markdown"], text=True, capture_output=True)
    if result.returncode:
        raise SystemExit(f"dormouse simulate {' '.join(arguments)}: {result.stderr}")
    if isTold:
        print(f"`dormouse simulate {' '.join(arguments)}`: {time.monotonic() - began:.1f} s\n")
    print(result.stdout, flush=True)


def path(name):
    return f"Policies/{name}.yaml"


def varied(directory):
    """Shipped policies with one line changed."""
    paths = []
    for name, line, other in VARIED:
        with open(path(name)) as file:
            text = file.read()
        if text.count(line) != 1:
            raise SystemExit(f"{path(name)} has no single line '{line}'")
        text = text.replace(line, other).replace(f"name: {name}", f"name: {name}.{other.replace(': ', '.')}", 1)
        paths.append(os.path.join(directory, f"{len(paths)}.yaml"))
        with open(paths[-1], "w") as file:
            file.write(text)
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", default="1000")
    parser.add_argument("--hours", default="24")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--binary", default=os.path.join(ROOT, ".build/release/dormouse"))
    parser.add_argument("--output", help="a directory for the plots")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    output = os.path.abspath(options.output) if options.output else None
    os.chdir(ROOT)
    seeds = options.seeds.split(",")
    all_policies = ",".join(path(name) for name in POLICIES)
    ordered = ",".join(path(name) for name in ORDERED)
    orders = [part for order in ORDERS for part in ("--order", order)]
    with tempfile.TemporaryDirectory() as directory:
        for trace in TRACES:
            print(f"## {trace}\n", flush=True)
            size = ["--generate", trace, "--workers", options.workers, "--hours", options.hours]
            for seed in seeds:
                plot = ["--svg", f"{output}/{trace}.svg"] if output and seed == seeds[0] else []
                simulate(binary, size + ["--seed", seed, "--policy", all_policies] + plot)
            for seed in seeds:
                simulate(binary, size + ["--seed", seed, "--policy", ordered] + orders)
            print("With one line of the policy changed:\n", flush=True)
            simulate(binary, size + ["--policy", ",".join(varied(directory))], isTold=False)


if __name__ == "__main__":
    main()
