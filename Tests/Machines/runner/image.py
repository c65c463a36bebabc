"""A machine's disk: made once by debootstrap from the mirror that the host's apt uses, kept in the cache.

The file is never written to again: machines boot from overlays."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

TOOLS = ["qemu-system-x86_64", "qemu-img", "debootstrap", "mke2fs"]

PACKAGES = """systemd-sysv systemd dbus dbus-user-session libpam-systemd polkitd udev kmod util-linux iproute2 procps
psmisc sudo login passwd e2fsprogs initramfs-tools zstd linux-image-amd64
python3 nodejs redis-server redis-tools nginx-light postgresql logrotate tmux curl jq gdb-minimal
libyaml-0-2 libzstd1 init-system-helpers""".split()

# Those of these that are installed are kept in the image: checks install them again, and postinst restarts units.
REINSTALLED = ["redis-server", "nginx", "nginx-common", "nginx-light"]


def found(tool):
    return shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def mirror():
    """The archive that the host's apt gets Debian from; `MACHINES_MIRROR=` names another one."""
    if named := os.environ.get("MACHINES_MIRROR"):
        return named
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT)", "Created-By: Packages"],
        capture_output=True, text=True, check=False).stdout.splitlines()
    for line in listed:
        uri, _, component = line.partition(" ")
        if component == "main" and uri.rstrip("/").endswith("/debian"):
            return uri
    sys.exit("test-machines: apt's sources name no archive of Debian; set MACHINES_MIRROR=")


class Image:
    def __init__(self, cache, suite, here):
        self.suite = suite
        self._agent = here / "agent.py"
        self._setup = here / "runner/setup-root.sh"
        recipe = "\0".join([" ".join(PACKAGES + REINSTALLED), self._agent.read_text(), self._setup.read_text()])
        self.directory = cache / f"{suite}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"

    @property
    def disk(self):
        return self.directory / "root.ext4"

    def kernel(self, which):
        """A directory with `vmlinuz` and `initrd`; `release` is its version."""
        return self.directory / "kernels" / which

    def has(self, which):
        return (self.kernel(which) / "vmlinuz").exists()

    def prepare(self):
        if self.disk.exists():
            return self
        if os.geteuid() != 0:
            sys.exit("test-machines: images are made by debootstrap, which needs root")
        print(f"test-machines: making the image of {self.suite} in {self.directory} (some minutes)", flush=True)
        work = self.directory.with_suffix(".new")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        archive, root = mirror(), work / "root"
        with open(work / "log", "w") as log:
            def step(*command, **more):
                subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log,
                               stderr=subprocess.STDOUT, check=True, **more)
            try:
                step(found("debootstrap"), "--variant=minbase", "--include=" + ",".join(PACKAGES), self.suite, root,
                     archive)
                step("bash", self._setup, root, self.suite, archive, self._agent, work / "kernels", *REINSTALLED)
                step(found("mke2fs"), "-q", "-t", "ext4", "-L", "root", "-d", root, work / "new.ext4", "8G")
            except subprocess.CalledProcessError as error:
                sys.exit(f"test-machines: {error}; {work}/log has its output")
        shutil.rmtree(root)
        (work / "new.ext4").rename(work / "root.ext4")
        shutil.rmtree(self.directory, ignore_errors=True)
        work.rename(self.directory)
        return self
