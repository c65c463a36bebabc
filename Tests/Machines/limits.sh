#!/bin/bash
# limits.sh EXECUTABLE
#
# Runs inside a machine with systemd, as root, with the shipped units installed. A worker that takes more
# than its limits.memory is ended by the kernel and reported as such, before and after kill -9 of the
# daemon beside a living worker with a limit. Each line ends in ok or FAIL.
DM=${1:?the executable}; CLIENT=${CLIENT:-$DM}; FAILED=0
check() { if eval "$2"; then echo "$1: ok"; else echo "$1: FAIL"; FAILED=1; fi; }
mkdir -p /etc/dormouse /run/systemd/system/dormouse.service.d
cat > /etc/dormouse/dormouse.yaml <<'P'
policy: ios-5
policy_overrides: { watchdog: { launch: 5m }, background: { suspend_after: never }, pressure: { warning: never, urgent: never } }
workers:
  calm: { command: [sleep, "100000"], limits: { memory: 64MB } }
  eater:
    command: [python3, -c, "import time; time.sleep(1); x = bytearray(150 << 20); time.sleep(1e6)"]
    autostart: false
    restart: { when: "no" }
    limits: { memory: 64MB }
P
printf '[Service]\nExecStartPre=\nExecStartPre=-%s daemon --before-start\nExecStopPost=\nExecStopPost=-%s daemon --before-start\nExecStart=\nExecStart=%s daemon\n' "$DM" "$DM" "$DM" \
  > /run/systemd/system/dormouse.service.d/machine.conf
systemctl daemon-reload; systemctl reset-failed dormouse 2> /dev/null; systemctl restart dormouse
ready() { for _ in $(seq 60); do timeout 10 "$CLIENT" ps > /dev/null 2>&1 && return; sleep 1; done; }
UNIT=/sys/fs/cgroup/system.slice/dormouse.service
eat() {
  timeout 60 "$CLIENT" start eater > /dev/null 2>&1
  for _ in $(seq 30); do timeout 20 "$CLIENT" status eater | grep -q 'OOM killer' && break; sleep 1; done
  check "$1: the kernel's kill is reported by status" "timeout 20 '$CLIENT' status eater | grep -q 'OOM killer'"
}
systemctl --version | head -1
ready; cat $UNIT/*/worker-calm/memory.max
check "the limit is set" '[ "$(cat $UNIT/*/worker-calm/memory.max)" = 67108864 ]'
check "no process is in the unit's own group" '[ -z "$(cat $UNIT/cgroup.procs)" ]'
eat "first daemon"
check "a low memory report names it" "timeout 20 '$CLIENT' jetsam | grep -q eater"
calm=$(cat $UNIT/*/worker-calm/cgroup.procs)
kill -9 "$(systemctl show -p MainPID --value dormouse)"; sleep 3; ready
check "after kill -9 the unit runs again" '[ "$(systemctl is-active dormouse)" = active ]'
check "its worker lives on" '[ "$(cat $UNIT/*/worker-calm/cgroup.procs)" = "$calm" ]'
check "its limit is set again" '[ "$(cat $UNIT/*/worker-calm/memory.max)" = 67108864 ]'
eat "second daemon"
printf 'workers: [' > /etc/dormouse/dormouse.yaml; systemctl stop dormouse; systemctl start dormouse; sleep 5
check "a configuration that can't be read is tried once" '[ "$(systemctl show -p NRestarts --value dormouse)" = 0 ]'
exit $FAILED
