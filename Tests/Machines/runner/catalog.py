"""Which machines there are, and which checks: each check's header says how it is run."""
import dataclasses
import pathlib
import re


@dataclasses.dataclass(frozen=True)
class Machine:
    name: str
    suite: str
    # Which of the image's kernels: the release's own, or the newest of its backports.
    kernel: str
    text: str


MACHINES = [
    Machine("debian12", "bookworm", "stock", "Debian 12 with its own kernel (6.1), systemd 252"),
    Machine("debian13", "trixie", "stock", "Debian 13 with its own kernel (6.12), systemd 257"),
    Machine("debian13-backports", "trixie", "backports", "Debian 13 with the newest kernel of trixie-backports"),
]


@dataclasses.dataclass(frozen=True)
class Cell:
    """One check in one variant."""
    path: pathlib.Path
    check: str
    title: str
    user: str
    variables: tuple
    # `booted`: without the package; `installed`: with it, and its service running.
    start: str
    # The limit on hardware; emulation has several times as much.
    seconds: int

    @property
    def name(self):
        return "-".join([self.check, self.user] + [v.split("=", 1)[1] for v in self.variables])


def header(path):
    """The lines `# key: value` at the top of a check."""
    found = {}
    for line in path.read_text().splitlines():
        if match := re.match(r"# (check|as|each|start|seconds|order): (.*)", line):
            found[match[1]] = match[2].strip()
        elif line and not line.startswith("#"):
            break
    return found


def cells(directory):
    """All variants of all checks, in the order of their `order:` (a small number is first), then by name."""
    found = []
    for path in directory.iterdir():
        keys = header(path) if path.suffix in (".py", ".sh") else {}
        if "check" not in keys:
            continue
        for user in keys.get("as", "root").split():
            for each in keys.get("each", "").split() or [None]:
                found.append((int(keys.get("order", 50)), Cell(
                    path, path.stem, keys["check"], user, (each,) if each else (), keys.get("start", "installed"),
                    int(keys.get("seconds", 120)))))
    return [cell for _, cell in sorted(found, key=lambda f: (f[0], f[1].name))]
