#!/bin/bash
# check: RAM used up: with free swap (disk, zram) no worker is ended, with swap: 0% workers are
# each: SWAP=disk SWAP=zram
# seconds: 90
# order: 46
# Runs inside a machine with systemd and 2 GB of RAM, as root. Overwrites /dev/vdb. With `budget: host`, a machine
# whose RAM is used up and whose swap is free ends no worker; the same machine with `swap: 0%` does. Each
# line ends in ok or FAIL.
CLIENT=/usr/bin/dormouse; FAILED=0
case ${SWAP:-disk} in
  disk) DEVICE=/dev/vdb;;
  zram) modprobe zram || { echo "skipped: this kernel has no zram"; exit 77; }
    DEVICE=/dev/zram0; echo 2G > /sys/block/zram0/disksize;;
esac
check() { if eval "$2"; then echo "$1: ok"; else echo "$1: FAIL"; FAILED=1; fi; }
mkdir -p /etc/dormouse
configure() { # SWAP-PERCENT
  cat > /etc/dormouse/dormouse.yaml <<P
policy: ios-5
policy_overrides:
  watchdog: { launch: 5m }
  background: { suspend_after: 5s }
  # Emulation stalls for other reasons, so only available memory counts here.
  pressure: { $1 warning: { available_below: 15% }, urgent: { available_below: 10% }, critical: { available_below: 5% } }
  hibernate: { enabled: false }
workers:
  small: { command: [python3, -c, "import os, time; x = os.urandom(1 << 20) * 8; time.sleep(1e6)"], restart: { when: "no" } }
  big: { command: [python3, -c, "import os, time; x = os.urandom(1 << 20) * 200; time.sleep(1e6)"], restart: { when: "no" } }
  front: { command: [python3, -c, "import os, time; x = os.urandom(1 << 20) * 60; time.sleep(1e6)"], restart: { when: "no" } }
P
}
cat > /tmp/take.py <<'P'
# Takes memory that can't be compressed until 4 % is available, keeps it so for 15 s; at most 2.5 GB.
import os, sys, time
def info(key): return next(int(l.split()[1]) >> 10 for l in open("/proc/meminfo") if l.startswith(key + ":"))
total, least, taken, end = info("MemTotal"), 10**9, [], None
open("/proc/self/oom_score_adj", "w").write("1000")
chunk = os.urandom(1 << 20); begin = time.time()
while time.time() - begin < 150 and len(taken) < 2500 and info("SwapFree") > 900:
    available = info("MemAvailable"); least = min(least, available)
    if available > total * 4 // 100: taken += [bytearray(chunk) for _ in range(4)]
    elif end is None: end = time.time() + 15
    else: time.sleep(0.05)
    if end and time.time() > end: break
print(f"  took {len(taken)} MB of {total} MB; least available {least} MB ({100 * least // total} %), swap free now {info('SwapFree')} MB")
P
run() { # sets ALIVE
  systemctl reset-failed dormouse 2> /dev/null; systemctl restart dormouse
  for _ in $(seq 60); do timeout 10 "$CLIENT" ps 2> /dev/null | grep -q '^front.*ground' && break; sleep 1; done; sleep 4
  timeout 20 "$CLIENT" foreground front > /dev/null; sleep 12
  timeout 20 "$CLIENT" ps | sed 's/^/  /'
  python3 /tmp/take.py; sleep 3
  timeout 60 "$CLIENT" ps | sed 's/^/  /'
  timeout 60 "$CLIENT" events --since 4m | grep -E 'pressure|terminat' | cut -c1-150 | tail -12 | sed 's/^/  /'
  ALIVE=$(for w in small big front; do find /sys/fs/cgroup/system.slice/dormouse.service -type d -name worker-$w -exec cat {}/cgroup.procs \; | head -1; done | wc -l)
}
echo "$("$CLIENT" --version), $(systemctl --version | head -1), Linux $(uname -r)"
systemctl daemon-reload; mkswap "$DEVICE" > /dev/null; swapon "$DEVICE"; cat /proc/swaps
configure ""; run; check "with free swap no worker is terminated" '[ "$ALIVE" = 3 ]'
echo 200M > /sys/fs/cgroup/system.slice/dormouse.service/memory.reclaim 2> /dev/null
sed 's/^/  /' /proc/swaps; timeout 60 "$CLIENT" status big | grep -iE 'swap|footprint' | sed 's/^ */  status big: /'
check "status shows how much of a worker is swapped" "timeout 60 '$CLIENT' status big | grep -iE 'swap' | grep -q MB"
timeout 60 "$CLIENT" ps | tail -1 | sed 's/^/  /'
sync; echo 3 > /proc/sys/vm/drop_caches; swapoff -a; swapon "$DEVICE"
configure "swap: 0%,"; run; check "with swap: 0% workers are terminated (this shows that the pressure was real)" '[ "$ALIVE" -lt 3 ]'
systemctl stop dormouse; swapoff -a
exit $FAILED
