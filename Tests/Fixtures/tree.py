"""The python part of tree.sh: a parent and children, each holding state, asked over pipes."""
import argparse
import hashlib
import os
import subprocess
import sys


class State:
    def __init__(self, seed, megabytes):
        line = "%d: the dormouse sleeps through the winter, and wakes as it was. "
        self.lines = [line % (seed * 1000003 + n) + "z" * (n % 97)
                      for n in range(megabytes * 6000)]

    def digest(self):
        sha = hashlib.sha256()
        for line in self.lines:
            sha.update(line.encode())
        return sha.hexdigest()

    def touch(self):
        for n in range(0, len(self.lines), 11):
            self.lines[n] = self.lines[n][::-1]

    def answer(self, command):
        if command == "digest":
            return "digest " + self.digest()
        if command == "touch":
            self.touch()
            return "touched"
        return f"{command} {os.getpid()}"


def child(seed, megabytes):
    state = State(seed, megabytes)
    print("ready", os.getpid(), flush=True)
    for line in sys.stdin:
        print(state.answer(line.strip()), flush=True)


def ask(process, command):
    process.stdin.write(command + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def parent(arguments):
    state = State(0, arguments.megabytes)
    children = [
        subprocess.Popen(
            [sys.executable, __file__, "--seed", str(n), "--megabytes", str(arguments.megabytes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(1, arguments.children + 1)]
    for process in children:
        process.stdout.readline()
    print("ready", arguments.shell, flush=True)
    for line in sys.stdin:
        command = line.strip()
        answers = [state.answer(command)] + [ask(process, command) for process in children]
        if command == "digest":
            together = hashlib.sha256("".join(answers).encode()).hexdigest()
            print("digest" if all(answers) else "error: a child has ended,", together, flush=True)
        elif command == "touch":
            print("touched", flush=True)
        else:
            pids = [answer.split()[-1] for answer in answers]
            print("pids", arguments.shell, *pids, flush=True)
    for process in children:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shell", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--megabytes", type=int, default=4)
    parser.add_argument("--children", type=int, default=0)
    given = parser.parse_args()
    if given.shell:
        parent(given)
    else:
        child(given.seed, given.megabytes)
