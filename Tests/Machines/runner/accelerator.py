"""KVM where a guest's kernel runs under it, emulation elsewhere. `ACCEL=kvm` or `ACCEL=tcg` decides by hand."""
import dataclasses
import os
import subprocess
import tempfile
import time


@dataclasses.dataclass(frozen=True)
class Accelerator:
    is_emulation: bool
    text: str
    options: tuple
    # Appended to the kernel's command line. What emulation needs are only clocks and mitigations.
    append: str

    @property
    def patience(self):
        """By how much deadlines are longer."""
        return float(os.environ.get("PATIENCE", "8" if self.is_emulation else "1"))


KVM = Accelerator(False, "KVM", ("-accel", "kvm", "-cpu", "host"), "")
TCG = Accelerator(
    True, "emulation (20 to 100 times slower than hardware)",
    ("-accel", "tcg,thread=multi,tb-size=1024", "-cpu", "max,la57=off"),
    "mitigations=off no_timer_check tsc=reliable")


def choose(image):
    wanted = os.environ.get("ACCEL")
    if wanted:
        return KVM if wanted == "kvm" else TCG
    return KVM if os.access("/dev/kvm", os.R_OK | os.W_OK) and boots(image) else TCG


def boots(image):
    """/dev/kvm may be there and run no ordinary kernel: so a kernel is started, and has to print its version."""
    kernel = image.kernel("stock")
    with tempfile.NamedTemporaryFile(prefix="kvm-") as console:
        qemu = subprocess.Popen(
            ["qemu-system-x86_64", *KVM.options, "-m", "512", "-display", "none", "-nic", "none", "-no-reboot",
             "-kernel", str(kernel / "vmlinuz"), "-append", "console=ttyS0 panic=-1", "-serial", f"file:{console.name}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 20
            while time.monotonic() < end:
                if b"Linux version" in open(console.name, "rb").read():
                    return True
                if qemu.poll() is not None:
                    return False
                time.sleep(0.2)
            return False
        finally:
            qemu.kill()
            qemu.wait()
