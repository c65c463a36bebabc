#!/usr/bin/env python3
"""Dormouse beside its peers, in turns: SIGCONT alone, the kernel's swap on zram and on a file, memcr, a relaunch.
See README.md here."""
import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time

from bench import machine
from Peers import swap
from Peers.processor import Hogs
from Peers.programs import KINDS, PROGRAMS
from Peers.ways import Dormouse, Memcr, Relaunched, Stopped, Swapped, anonymous

WARM_UP = 3


def turn(peer, kind):
    """One sleep and one wake: milliseconds to wake and to sleep, bytes in RAM and on disk meanwhile, milliseconds of
    processor time for both together."""
    peer.prepare()
    used = peer.used()
    start = time.perf_counter()
    peer.sleep()
    slept = (time.perf_counter() - start) * 1000
    ram, disk = peer.asleep()
    time.sleep(0.02)
    start = time.perf_counter()
    peer.wake(kind)
    woken = (time.perf_counter() - start) * 1000
    peer.connection.rest()
    peer.settle()
    time.sleep(0.15)  # The footprint is measured 0.1 s after a fill.
    return {"wake": woken, "sleep": slept, "ram": ram, "disk": disk, "used": peer.used() - used}


def measure(peers, kind, rounds):
    """Each peer has its turn in each round, and each round begins with another one."""
    for peer in peers:
        peer.launch()
    size = max(anonymous(peer.pid) for peer in peers)
    broken = set()
    for number in range(WARM_UP + rounds):
        for place in range(len(peers)):
            peer = peers[(place + number) % len(peers)]
            if peer in broken:
                continue
            try:
                figures = turn(peer, kind)
            except (OSError, RuntimeError, swap.Unavailable) as error:
                peer.errors.append(f"{kind}: {error}")
                broken.add(peer)
                if isinstance(peer, Swapped) and peer.device.is_on():
                    peer.device.off()
                continue
            if number >= WARM_UP:
                for key, value in figures.items():
                    peer.results[kind][key].append(value)
    return size


def finish(peers):
    for peer in peers:
        with contextlib.suppress(OSError, RuntimeError, AttributeError, subprocess.SubprocessError):
            peer.end()
        peer.close()


def p95(values):
    """By nearest rank, as `dormouse bench`."""
    return sorted(values)[-(-len(values) * 95 // 100) - 1]


def milliseconds(values):
    return f"{statistics.median(values):.1f} ({p95(values):.1f})" if values else "–"


def used(values):
    return f"{statistics.median(values):.0f}" if values and max(values) > 0 else "–"


def megabytes(values):
    return f"{statistics.median(values) / 1e6:.1f}" if values else "–"


def table(peers, size, rounds, load):
    program = peers[0].program
    print(f"\n{program.name}, {peers[0].size} {program.unit}, {size / 1e6:.0f} MB, {rounds} rounds, load {load} "
          f"to {os.getloadavg()[0]:.1f}; ms, median (p95); MB\n")
    print("| | wake, light request | wake, all objects | to sleep | stays in RAM, light, all | on disk "
          "| processor, light | processor, all |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for peer in peers:
        light, everything = peer.results["light"], peer.results["all"]
        print(f"| {peer.name} | {milliseconds(light['wake'])} | {milliseconds(everything['wake'])} "
              f"| {milliseconds(light['sleep'] + everything['sleep'])} "
              f"| {megabytes(light['ram'])}, {megabytes(everything['ram'])} "
              f"| {megabytes(light['disk'] + everything['disk'])} "
              f"| {used(light['used'])} | {used(everything['used'])} |")
    for peer in peers:
        for error in peer.errors:
            print(f"\n{peer.name}: not measured to the end: {error}")
    sys.stdout.flush()


def make_peers(program, size, options, devices):
    worker = (program, size)
    peers = [
        Stopped("SIGCONT alone", *worker),
        Dormouse("Dormouse, `auto` (default)", *worker),
        Dormouse("Dormouse, `auto`, image not in the page cache", *worker, is_dropped=True),
        Dormouse("Dormouse, `eager`", *worker, "eager"),
        Dormouse("Dormouse, `lazy`", *worker, "lazy"),
        Dormouse("Dormouse, `lazy`, working set kept", *worker, "lazy", keeps_working_set=True)]
    if options.memcr:
        peers += [
            Memcr("memcr, lz4", *worker, options.memcr, ["-z", "lz4"]),
            Memcr("memcr, lz4, file not in the page cache", *worker, options.memcr, ["-z", "lz4"], is_dropped=True),
            Memcr("memcr, zstd, MD5", *worker, options.memcr, ["-z", "zstd", "-c"])]
    peers += [Swapped(name, *worker, device) for name, device in devices]
    peers.append(Relaunched("relaunch", *worker))
    return [peer for peer in peers if not options.only or any(word in peer.name for word in options.only)]


def make_devices(options, stack):
    """The kernel's swap, where the machine allows it. Says what is left out, and why."""
    devices = []
    if options.no_swap:
        return devices
    try:
        if os.geteuid() != 0:
            raise swap.Unavailable("needs root")
        if swap.areas():
            raise swap.Unavailable("other swap is on, and pages would be written to both; `swapoff -a` first")
        swap.MemoryGroup().close()
        directory = swap.filesystem_directory()
        stack.callback(swap.remove_directory, directory)
    except swap.Unavailable as error:
        print(f"left out: zram and a swap file: {error}")
        return devices
    for name, make in (("zram", lambda: swap.Zram(options.swap_megabytes, options.zram_algorithm)),
                       ("swap file", lambda: swap.SwapFile(directory, options.swap_megabytes))):
        try:
            device = make()
        except swap.Unavailable as error:
            print(f"left out: {name}: {error}")
            continue
        stack.callback(device.close)
        devices.append((f"zram ({device.algorithm})" if name == "zram" else name, device))
    return devices


def run(program, options, devices):
    if not program.is_there():
        print(f"left out: {program.name}: {program.tool} is not installed")
        return
    try:
        for size in options.size or program.sizes:
            load = f"{os.getloadavg()[0]:.1f}"
            peers = make_peers(program, size, options, devices)
            memory = 0
            for kind in KINDS:
                try:
                    memory = max(memory, measure(peers, kind, options.rounds))
                finally:
                    finish(peers)
            table(peers, memory, options.rounds, load)
    finally:
        program.remove()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="DORMOUSE=FILE in the environment names the executable. Swap needs root, swapon "
        "and a memory cgroup; where these are missing, the script says so and leaves its rows out.")
    parser.add_argument("--rounds", type=int, default=15, help=f"measured rounds, after {WARM_UP} that aren't (15)")
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--program", nargs="+", choices=names, default=["python"],
                        help=f"workers: {', '.join(names)} (python)")
    parser.add_argument("--size", type=int, nargs="+", help="sizes of the worker; in objects, keys or MB: see "
                        "Peers/programs.py")
    parser.add_argument("--memcr", metavar="FILE", help="memcr's executable, built with COMPRESS_LZ4=1 COMPRESS_ZSTD=1 "
                        "CHECKSUM_MD5=1; without it, memcr is left out")
    parser.add_argument("--no-swap", action="store_true", help="leave zram and the swap file out")
    parser.add_argument("--swap-megabytes", type=int, default=512, help="size of each swap area (512)")
    parser.add_argument("--zram-algorithm", help="for example lz4 or zstd; the kernel's default without it")
    parser.add_argument("--hogs", action="store_true", help="with a process on each processor that computes all the time")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="rows whose name contains one of these words")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that swap is switched off
    print(machine())
    with contextlib.ExitStack() as stack:
        stack.enter_context(Hogs(options.hogs))
        devices = make_devices(options, stack)
        for program in PROGRAMS:
            if program.name in options.program:
                run(program, options, devices)


if __name__ == "__main__":
    main()
