"""The python part of tree.sh: a parent and children, each holding state, asked over pipes."""
import hashlib
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


def child(seed, megabytes):
    state = State(seed, megabytes)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(state.digest(), flush=True)


def ask(process):
    process.stdin.write("digest\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def parent(megabytes, count):
    state = State(0, megabytes)
    children = [
        subprocess.Popen(
            [sys.executable, __file__, str(megabytes), "0", str(seed)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for seed in range(1, count + 1)]
    for process in children:
        process.stdout.readline()
    print("ready", flush=True)
    for _ in sys.stdin:
        answers = [state.digest()] + [ask(process) for process in children]
        together = hashlib.sha256("".join(answers).encode()).hexdigest()
        print("digest" if all(answers) else "error: a child has ended,", together, flush=True)
    for process in children:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    if len(given) > 2:
        child(given[2], given[0])
    else:
        parent(*given)
