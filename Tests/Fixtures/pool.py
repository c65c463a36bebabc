"""A pool of processes that share a parent's heap by fork (multiprocessing), asked over stdin.

    pool.py PROCESSES MEGABYTES      prints `ready`

On stdin, a line each: `digest` answers with one over the parent's heap and what every process of the
pool sees of it. End of input ends it."""
import gc
import hashlib
import multiprocessing
import sys

heap = []


def digest(number):
    sha = hashlib.sha256(str(number).encode())
    for line in heap:
        sha.update(line.encode())
    return sha.hexdigest()


def main():
    processes, megabytes = int(sys.argv[1]), int(sys.argv[2])
    heap.extend(f"{n}: the dormouse sleeps" + "z" * (n % 97) for n in range(megabytes * 6000))
    gc.freeze()
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        pool.map(digest, range(processes), chunksize=1)
        print("ready", flush=True)
        for _ in sys.stdin:
            sha = hashlib.sha256(digest(-1).encode())
            for one in pool.map(digest, range(processes * 2), chunksize=1):
                sha.update(one.encode())
            print("digest", sha.hexdigest(), flush=True)


main()
