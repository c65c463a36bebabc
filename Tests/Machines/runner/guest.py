"""A running machine: qemu on an overlay, its snapshots, and commands in it."""
import base64
import json
import os
import socket
import subprocess
import time


class GuestError(Exception):
    pass


running = set()


def end_all():
    for qemu in list(running):
        qemu.kill()


class Guest:
    """`overlay` and `swap` are made if they don't exist. `files` is read as a tar archive in the guest (/dev/vdc)."""

    def __init__(self, directory, disk, kernel, accel, files, memory=2048):
        self._directory, self._kernel, self._accel, self._files, self._memory = directory, kernel, accel, files, memory
        self._overlay, self._swap = directory / "disk.qcow2", directory / "swap.qcow2"
        if not self._overlay.exists():
            self._make("-b", disk, "-F", "raw", self._overlay)
            self._make(self._swap, "2G")
        self._qemu = self._agent = self._monitor = None
        self._identifier = 0

    @staticmethod
    def _make(*arguments):
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *map(str, arguments)], check=True)

    def start(self):
        """Boots, and waits until the machine has come up."""
        self._launch()
        self.await_boot()

    def _launch(self, *options):
        paths = {name: self._directory / f"{name}.sock" for name in ("agent", "monitor")}
        for path in paths.values():
            path.unlink(missing_ok=True)
        append = f"root=LABEL=root rw console=ttyS0 loglevel=5 {self._accel.append} {os.environ.get('APPEND', '')}"
        with open(self._directory / "qemu.log", "ab") as log:
            self._qemu = subprocess.Popen(
                ["qemu-system-x86_64", *self._accel.options, "-smp", "2", "-m", str(self._memory), "-nic", "none",
                 "-display", "none", "-kernel", str(self._kernel / "vmlinuz"), "-initrd", str(self._kernel / "initrd"),
                 "-append", append,
                 "-drive", f"file={self._overlay},if=virtio,format=qcow2,cache=writeback",
                 "-drive", f"file={self._swap},if=virtio,format=qcow2,cache=writeback",
                 "-drive", f"file={self._files},if=virtio,format=raw,readonly=on",
                 "-chardev", f"socket,id=agent,path={paths['agent']},server=on,wait=off", "-device", "virtio-serial",
                 "-device", "virtserialport,chardev=agent,name=agent",
                 "-chardev", f"file,id=console,path={self._directory}/console.log,append=on", "-serial", "chardev:console",
                 "-qmp", f"unix:{paths['monitor']},server=on,wait=off", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        running.add(self._qemu)
        (self._directory / "qemu.pid").write_text(f"{self._qemu.pid}\n")
        self._agent, self._monitor = self._connect(paths["agent"]), self._connect(paths["monitor"])
        self._lines(self._monitor, 30)
        self._order("qmp_capabilities")

    def _connect(self, path):
        end = time.monotonic() + 30
        while True:
            try:
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(str(path))
                return [connection, b""]
            except OSError:
                connection.close()
                if time.monotonic() > end or self._qemu.poll() is not None:
                    raise GuestError(f"qemu didn't start; {self._directory}/qemu.log has its output")
                time.sleep(0.1)

    def await_boot(self):
        """After a start or a reboot: until the agent answers and the service manager has started everything."""
        limit = 45 * self._accel.patience
        end = time.monotonic() + limit
        while True:
            try:
                if self.run("true", 10)[0] == 0:
                    break
            except GuestError:
                pass
            if time.monotonic() > end:
                raise GuestError(f"it didn't boot within {limit:.0f} s; {self._directory}/console.log shows how far")
            time.sleep(1)
        self.run("systemctl is-system-running --wait; true", limit)

    def run(self, command, seconds, output=None):
        """Runs a command as root; returns its exit status and output. `output` gets the text as it comes."""
        return self._request({"command": command, "seconds": seconds}, seconds + 30, output)

    def put(self, path, content):
        if self._request({"file": path, "base64": base64.b64encode(content).decode()}, 120)[0] != 0:
            raise GuestError(f"{path} can't be written in the machine")

    def _request(self, request, seconds, output=None):
        self._identifier += 1
        self._agent[0].settimeout(seconds)
        self._agent[0].sendall((json.dumps({"id": self._identifier, **request}) + "\n").encode())
        text, end = "", time.monotonic() + seconds
        while True:
            for answer in self._lines(self._agent, end - time.monotonic()):
                if answer.get("id") != self._identifier:
                    continue
                if "code" in answer:
                    return answer["code"], text
                text += answer.get("output", "")
                if output:
                    output(answer.get("output", ""))

    def _lines(self, channel, seconds):
        """The next objects; at least one."""
        end = time.monotonic() + seconds
        while b"\n" not in channel[1]:
            channel[0].settimeout(max(end - time.monotonic(), 0.01))
            try:
                data = channel[0].recv(65536)
            except TimeoutError:
                raise GuestError("no answer from the machine")
            if not data:
                raise GuestError("qemu has ended")
            channel[1] += data
        *lines, channel[1] = channel[1].split(b"\n")
        found = []
        for line in lines:
            try:
                found.append(json.loads(line))
            except ValueError:
                pass  # The rest of a line from before a snapshot or a reboot.
        return found

    def _order(self, command, **arguments):
        """An order to qemu itself."""
        self._monitor[0].sendall((json.dumps({"execute": command, "arguments": arguments}) + "\n").encode())
        while True:
            for answer in self._lines(self._monitor, 300):
                if "return" in answer:
                    return answer["return"]
                if "error" in answer:
                    raise GuestError(f"qemu: {answer['error'].get('desc')}")

    def _human(self, command):
        if text := self._order("human-monitor-command", **{"command-line": command}).strip():
            raise GuestError(f"qemu: {command}: {text}")

    def save(self, name):
        self._human(f"savevm {name}")

    def restore(self, name):
        """As at the snapshot: memory, disks and all."""
        if self.runs:
            self._human(f"loadvm {name}")
            self._human("cont")
        else:
            self._launch("-loadvm", name)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if self.run("true", 20)[0] == 0:
                    return
            except GuestError:
                pass
        raise GuestError(f"it doesn't answer as at {name}")

    def cut_power(self):
        """What the guest hasn't written to its disk is lost."""
        self._qemu.kill()
        self._qemu.wait()
        running.discard(self._qemu)
        for channel in (self._agent, self._monitor):
            channel[0].close()
        self._qemu = None

    def await_reboot(self, boot):
        """Until the boot's identifier is another one than `boot`."""
        end = time.monotonic() + 90 * self._accel.patience
        while time.monotonic() < end:
            try:
                code, text = self.run("cat /proc/sys/kernel/random/boot_id", 10)
                if code == 0 and text.strip() != boot:
                    return self.await_boot()
            except GuestError:
                pass
            time.sleep(2)
        raise GuestError("it didn't come back from its reboot")

    @property
    def runs(self):
        return self._qemu is not None and self._qemu.poll() is None

    def end(self, keep=False):
        if self.runs:
            self.cut_power()
        if not keep:
            for path in (self._overlay, self._swap):
                path.unlink(missing_ok=True)
        for name in ("agent.sock", "monitor.sock", "qemu.pid"):
            (self._directory / name).unlink(missing_ok=True)
