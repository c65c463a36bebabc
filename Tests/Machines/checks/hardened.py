# check: adopted units with sandboxes (DynamicUser, ProtectSystem, PrivateTmp, seccomp, namespaces) hibernate and wake
# seconds: 120
# order: 32
"""Each unit is adopted by root's daemon, hibernated twice, and answers on one open connection with its memory."""
import http.client
import pathlib

from common import CALM, PATIENCE, PROGRAMS, anonymous, areas, check, configure, dormouse, eventually, finish, note, run

UNITS = {
    "dynamic": (8301, "DynamicUser=yes\nPrivateUsers=yes"),
    "strict": (8302, "ProtectSystem=strict\nProtectHome=yes\nPrivateTmp=yes\nPrivateDevices=yes\nReadWritePaths=/var/tmp"),
    "nonew": (8303, "NoNewPrivileges=yes\nCapabilityBoundingSet=\nAmbientCapabilities=\nUser=demo"),
    "proc": (8304, "ProtectProc=invisible\nProcSubset=pid\nUser=demo"),
    "seccomp": (8305, "SystemCallFilter=@system-service\nSystemCallErrorNumber=EPERM\nSystemCallArchitectures=native"),
    "wx": (8306, "MemoryDenyWriteExecute=yes\nLockPersonality=yes\nRestrictNamespaces=yes\nRestrictRealtime=yes\n"
                 "RestrictSUIDSGID=yes\nRestrictAddressFamilies=AF_INET AF_UNIX"),
    "kernel": (8307, "ProtectKernelTunables=yes\nProtectKernelModules=yes\nProtectKernelLogs=yes\nProtectControlGroups=yes\n"
                     "ProtectClock=yes\nProtectHostname=yes\nPrivateIPC=yes"),
    "limits": (8308, "MemoryMax=200M\nMemorySwapMax=0\nTasksMax=20\nLimitNOFILE=64\nCPUQuota=50%"),
    "everything": (8309, "DynamicUser=yes\nNoNewPrivileges=yes\nProtectSystem=strict\nProtectHome=yes\nPrivateTmp=yes\n"
                         "PrivateUsers=yes\nPrivateDevices=yes\nProtectProc=invisible\nProcSubset=pid\nPrivateIPC=yes\n"
                         "MemoryDenyWriteExecute=yes\nRestrictNamespaces=yes\nLockPersonality=yes\n"
                         "SystemCallFilter=@system-service\nSystemCallErrorNumber=EPERM\nProtectControlGroups=yes"),
}
configure(CALM + "workers: {}\n")
for name, (port, lines) in UNITS.items():
    pathlib.Path(f"/run/systemd/system/sandbox-{name}.service").write_text(
        f"[Service]\nExecStart=/usr/bin/python3 {PROGRAMS}/server.py {port}\n{lines}\n")
# A PID namespace and others of its own, as a container has.
pathlib.Path("/run/systemd/system/sandbox-namespaces.service").write_text(
    "[Service]\nExecStart=/usr/bin/unshare --pid --fork --mount-proc --ipc --uts --mount --cgroup "
    f"/usr/bin/python3 {PROGRAMS}/server.py 8310\nTimeoutStopSec=1\n")
run("systemctl", "daemon-reload")
for name, port in [(n, p) for n, (p, _) in UNITS.items()] + [("namespaces", 8310)]:
    unit = f"sandbox-{name}.service"
    started = run("systemctl", "start", unit)

    def connect():
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=40 * PATIENCE)
            connection.connect()
            return connection
        except OSError:
            return None

    connection = eventually(connect, 30, 0.5)
    if not check(f"{name}: the unit starts", connection, started.text or run("systemctl", "status", unit).text[-400:]):
        continue

    def ask():
        try:
            connection.request("GET", "/")
            return connection.getresponse().read().decode().strip()
        except (OSError, http.client.HTTPException) as error:
            return repr(error)

    first = ask()
    done = dormouse("adopt", name, "--unit", unit)
    if not check(f"{name}: it is adopted", done.code == 0, done.text):
        continue
    # In its own PID namespace the server has another number: the cgroup has the machine's.
    pids = [int(p) for p in pathlib.Path(f"/sys/fs/cgroup/system.slice/{unit}/cgroup.procs").read_text().split()]
    for turn in (2, 3):
        for _ in range(4):
            done = dormouse("hibernate", name)
            if done.code == 0:
                break
        check(f"{name}: it hibernates ({turn - 1})", done.code == 0, done.text)
        after = [anonymous(p) for p in pids]
        if not check(f"{name}: at most 256 KB stay ({turn - 1})", max(after) <= 256, f"{pids}: {after} KB"):
            note(dormouse("events", "--worker", name, "--lines", "3").text)
            note("\n".join(line for p in pids for line in areas(pathlib.Path(f"/proc/{p}/smaps").read_text())))
        answer = ask()
        check(f"{name}: it answers on its open connection ({turn - 1})", answer == f"{first.split()[0]} {turn} intact", f"{answer} after {first}")
    check(f"{name}: it is released", dormouse("release", name).code == 0)
    connection.close()
    stopped = run("systemctl", "stop", unit)
    # The first process of a PID namespace ignores SIGTERM.
    if name != "namespaces":
        check(f"{name}: it stops in the orderly way", run("systemctl", "show", "-P", "Result", unit).text == "success", stopped.text)
note(dormouse("events", "--since", "10m").text[-600:])
finish()
