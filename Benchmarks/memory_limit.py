"""A memory cgroup of version 1 or 2, for programs that may use only so much."""
import os
import signal
import time


class MemoryLimit:
    """Swap isn't limited: without swap on the machine, what doesn't fit is killed."""

    def __init__(self, megabytes):
        name = f"dormouse-bench-{os.getpid()}-{time.monotonic_ns()}"
        self.exists = False
        for root, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                           ("/sys/fs/cgroup", "memory.max")):
            self.path = os.path.join(root, name)
            try:
                os.mkdir(self.path)
            except OSError:
                continue
            try:
                self.write(file, megabytes << 20)
                self.is_first_version = file == "memory.limit_in_bytes"
                self.exists = True
                return
            except OSError:
                os.rmdir(self.path)

    def write(self, file, value):
        with open(os.path.join(self.path, file), "w") as out:
            out.write(str(value))

    def read(self, file):
        with open(os.path.join(self.path, file)) as lines:
            return lines.read()

    def enter(self):
        """Called in the child."""
        self.write("cgroup.procs", os.getpid())

    def peak(self):
        """Megabytes, page cache included."""
        file = "memory.max_usage_in_bytes" if self.is_first_version else "memory.peak"
        return int(self.read(file)) / 1048576

    def kills(self):
        lines = self.read("memory.oom_control" if self.is_first_version else "memory.events").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)

    def remove(self):
        """Ends what is left in it."""
        for _ in range(100):
            pids = self.read("cgroup.procs").split()
            if not pids:
                break
            for pid in pids:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.1)
        os.rmdir(self.path)
