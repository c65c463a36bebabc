#!/bin/bash
# check: limits.memory, OOM scores and the kernel's OOM killer, before and after kill -9
# seconds: 90
# order: 44
#
# Runs inside a machine with systemd, as root, with the package installed. A worker that takes more
# than its limits.memory is ended by the kernel and reported as such, before and after kill -9 of the
# daemon beside a living worker with a limit. The unit has OOMScoreAdjust=-900, and workers don't inherit
# it. Each line ends in ok or FAIL.
CLIENT=/usr/bin/dormouse; FAILED=0
check() { if eval "$2"; then echo "$1: ok"; else echo "$1: FAIL"; FAILED=1; fi; }
mkdir -p /etc/dormouse
cat > /etc/dormouse/dormouse.yaml <<'P'
policy: ios-5
policy_overrides: { watchdog: { launch: 5m }, background: { suspend_after: never }, pressure: { warning: never, urgent: never, critical: { available_below: 1KB } } }
workers:
  calm: { command: [sleep, "100000"], limits: { memory: 64MB } }
  plain: { command: [sh, -c, "sleep 100000; true"] }
  scored: { command: [sleep, "100000"], limits: { oom_score_adj: 300 } }
  eater:
    command: [python3, -c, "import time; time.sleep(1); x = bytearray(150 << 20); time.sleep(1e6)"]
    autostart: false
    restart: { when: "no" }
    limits: { memory: 64MB }
P
systemctl daemon-reload; systemctl reset-failed dormouse 2> /dev/null; systemctl restart dormouse
ready() { for _ in $(seq 60); do timeout 10 "$CLIENT" ps > /dev/null 2>&1 && return; sleep 1; done; }
UNIT=/sys/fs/cgroup/system.slice/dormouse.service
# The files of a worker's group, also where it is below another group of the unit.
group() { find $UNIT -type d -name "worker-$1" 2> /dev/null | head -1; }
value() { cat "$(group "$1")/$2" 2> /dev/null; }
score() { cat "/proc/$(value "$1" cgroup.procs | head -1)/oom_score_adj" 2> /dev/null; }
eat() {
  timeout 60 "$CLIENT" start eater > /dev/null 2>&1
  for _ in $(seq 30); do timeout 20 "$CLIENT" status eater | grep -q 'OOM killer' && break; sleep 1; done
  check "$1: the kernel's kill is reported by status" "timeout 20 '$CLIENT' status eater | grep -q 'OOM killer'"
  timeout 20 "$CLIENT" status eater | grep -m1 'OOM killer' | sed 's/^ */  /'
}
echo "$("$CLIENT" --version), $(systemctl --version | head -1), Linux $(uname -r)"
ready
for _ in $(seq 30); do [ -n "$(value scored cgroup.procs)" ] && break; sleep 1; done
echo "  daemon in $(cut -d: -f3 "/proc/$(systemctl show -p MainPID --value dormouse)/cgroup")," \
  "calm: memory.max $(value calm memory.max);" \
  "oom_score_adj: daemon $(cat "/proc/$(systemctl show -p MainPID --value dormouse)/oom_score_adj"), calm $(score calm), plain $(score plain), scored $(score scored)"
check "the limit is set" '[ "$(value calm memory.max)" = 67108864 ]'
check "no process is in the unit's own group" '[ -z "$(cat $UNIT/cgroup.procs)" ]'
check "the daemon has the unit's OOM score" '[ "$(cat /proc/$(systemctl show -p MainPID --value dormouse)/oom_score_adj)" = -900 ]'
check "a worker has OOM score 0" '[ "$(score plain)" = 0 ] && [ "$(score calm)" = 0 ]'
check "a process that a worker has started has OOM score 0" '[ "$(cat /proc/$(value plain cgroup.procs | tail -1)/oom_score_adj)" = 0 ]'
check "a worker has its own limits.oom_score_adj" '[ "$(score scored)" = 300 ]'
eat "first daemon"
check "a jetsam report names it" "timeout 20 '$CLIENT' jetsam | grep -q eater"
check "events name the kernel" "timeout 20 '$CLIENT' events --since 5m | grep eater | grep -q 'OOM killer'"
calm=$(value calm cgroup.procs)
kill -9 "$(systemctl show -p MainPID --value dormouse)"; sleep 3; ready
check "after kill -9 the unit runs again" '[ "$(systemctl is-active dormouse)" = active ]'
check "its worker lives on" '[ "$(value calm cgroup.procs)" = "$calm" ]'
check "its limit is set again" '[ "$(value calm memory.max)" = 67108864 ]'
eat "second daemon"
check "after a restart of the daemon a worker has OOM score 0" '[ "$(score calm)" = 0 ]'
# All memory of the machine, without a limit of its own: the kernel takes the worker and not the daemon.
sed -i 's/^  eater:/  hog:\n    command: [python3, -c, "import time; time.sleep(1); x = []\\nwhile True: x.append(bytearray(8 << 20))"]\n    autostart: false\n    restart: { when: "no" }\n  eater:/' /etc/dormouse/dormouse.yaml
timeout 30 "$CLIENT" reload > /dev/null 2>&1; daemon=$(systemctl show -p MainPID --value dormouse)
swaps=$(awk 'NR > 1 { print $1 }' /proc/swaps); [ -n "$swaps" ] && swapoff -a
timeout 60 "$CLIENT" start hog > /dev/null 2>&1; dmesg -C
# The daemon would end it sooner, because memory is critically short.
kill -STOP "$daemon"
for _ in $(seq 120); do dmesg | grep -q 'Out of memory: Killed process' && break; sleep 1; done
dmesg | grep 'Out of memory: Killed process' | cut -c1-110 | sed 's/^/  /'; kill -CONT "$daemon"; sleep 5
timeout 20 "$CLIENT" status hog | grep -E '^hog|why' | sed 's/^ */  /'
check "with no memory left, the kernel ends the worker that takes it, and status reports that" "timeout 20 '$CLIENT' status hog | grep -q 'OOM killer'"
check "nothing else was killed" '[ "$(dmesg | grep -c "Out of memory: Killed process")" = 1 ]'
check "with no memory left, the daemon survives" '[ "$(systemctl show -p MainPID --value dormouse)" = "$daemon" ]'
check "with no memory left, calm survives" '[ "$(value calm cgroup.procs)" = "$calm" ]'
printf 'workers: [' > /etc/dormouse/dormouse.yaml; systemctl stop dormouse; systemctl start dormouse; sleep 5
check "a configuration that can't be read is tried once" '[ "$(systemctl show -p NRestarts --value dormouse)" = 0 ]'
printf 'workers: {}\n' > /etc/dormouse/dormouse.yaml; systemctl reset-failed dormouse
exit $FAILED
