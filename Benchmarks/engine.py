#!/usr/bin/env python3
"""How long does the engine take for a decision, against 10, 100, 1,000 and 10,000 workers?

python3 Benchmarks/engine.py [--binary PATH]

Builds the executable target EngineBenchmark (release) and runs it with a malloc that counts."""
import argparse, os, subprocess, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def machine():
    with open("/proc/cpuinfo") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return f"{len(models)} × {models[0]}, Linux {os.uname().release}, load {os.getloadavg()[0]:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", help="an EngineBenchmark that is built already")
    options = parser.parse_args()
    binary = options.binary
    if not binary:
        build = ["swift", "build", "-c", "release", "--product", "EngineBenchmark"]
        subprocess.run(build, cwd=ROOT, check=True)
        where = subprocess.run(build + ["--show-bin-path"], cwd=ROOT, check=True, text=True, capture_output=True)
        binary = os.path.join(where.stdout.strip(), "EngineBenchmark")
    with tempfile.TemporaryDirectory() as directory:
        counter = os.path.join(directory, "mallocs.so")
        source = os.path.join(ROOT, "Benchmarks/Engine/mallocs.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", counter, source], check=True)
        print(machine(), flush=True)
        print(flush=True)
        subprocess.run([binary], check=True, env={**os.environ, "LD_PRELOAD": counter})


if __name__ == "__main__":
    main()
