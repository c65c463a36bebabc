#!/bin/bash
# check: an orderly reboot with adopted, hibernated units: all are stopped in the orderly way, and nothing is lost
# seconds: 120
# order: 48
#
# Phase 1 adopts nginx, redis and PostgreSQL, writes to them and hibernates them. After the reboot, what was written is
# there, and no unit was killed or crashed.
CLIENT=/usr/bin/dormouse; FAILED=0; KEEP=/var/lib/machine-check; mkdir -p $KEEP; UNITS="nginx redis-server postgresql"
unit() { case $1 in postgresql) echo postgresql@$(ls /etc/postgresql | head -1)-main.service;; *) echo "$1.service";; esac; }
check() { if eval "$2"; then echo "$1: ok"; else echo "$1: FAIL"; FAILED=1; fi; }
psql() { (cd /; su postgres -c "psql -qAtc \"$1\""); }
eventually() { local end=$((SECONDS + $1 * ${PATIENCE%%.*})); shift; until eval "$*" > /dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.5; done; }
case $PHASE in
  1)
    cat > /etc/dormouse/dormouse.yaml <<'C'
policy: ios-5
policy_overrides: { background: { suspend_after: never }, pressure: { warning: never, urgent: never }, hibernate: { after: never, cooldown: 0s, max_footprint: 128MB, min_footprint: 128KB, only_if_faster_than_relaunch: false } }
C
    MARK=m$RANDOM; echo $MARK > $KEEP/mark; date '+%Y-%m-%d %H:%M:%S' > $KEEP/since
    # Debian gives nginx 5 s to stop, on hardware: all units stop at once, and emulation takes longer.
    mkdir -p /etc/systemd/system/nginx.service.d
    printf '[Service]\nTimeoutStopSec=%s\n' $((5 * ${PATIENCE%%.*})) > /etc/systemd/system/nginx.service.d/machine.conf
    systemctl daemon-reload; systemctl restart dormouse
    for name in $UNITS; do systemctl start "$(unit "$name")"; done
    check "redis takes a write" "eventually 30 'redis-cli set key $MARK | grep -q OK'"
    check "PostgreSQL takes a write" "eventually 60 psql \"\\\"drop table if exists machine_check; create table machine_check as select '$MARK' v\\\"\""
    for name in $UNITS; do
      timeout 60 $CLIENT adopt "a-$name" --unit "$(unit "$name")"
      eventually 30 "$CLIENT hibernate a-$name"
      check "$name sleeps" "timeout 60 $CLIENT ps | grep -q '^a-$name .*hibernated'"
    done
    timeout 20 $CLIENT ps
    sync; [ $FAILED = 0 ] || exit 1
    exit 90;;
  2)
    MARK=$(cat $KEEP/mark)
    for name in $UNITS; do
      u=$(unit "$name"); journalctl -b -1 -u "$u" --no-pager -q -o short-precise --since "$(cat $KEEP/since)" > /tmp/last
      tail -4 /tmp/last | cut -c1-150 | sed 's/^/  /'
      check "$u was stopped in the orderly way" "grep -qE 'Stopped|Deactivated' /tmp/last && ! grep -qE 'Killing|code=killed|code=dumped|timed out|Failed with result' /tmp/last"
    done
    echo "  the daemon's last lines:"; journalctl -b -1 -u dormouse --no-pager -q -o short-precise | tail -12 | cut -c1-200 | sed 's/^/  /'
    check "no crash" "! journalctl -b -1 -k --no-pager -q | grep -qE 'segfault|general protection'"
    systemctl start redis-server nginx "$(unit postgresql)"
    check "redis has the last write" "eventually 30 '[ \"\$(redis-cli get key)\" = $MARK ]'"
    check "nginx answers" "eventually 30 'curl -s -m 20 -o /dev/null -f http://127.0.0.1/'"
    check "PostgreSQL has the last write" "eventually 60 '[ \"\$(psql \"select v from machine_check\")\" = $MARK ]'"
    check "PostgreSQL was shut down cleanly" '! grep -q "not properly shut down" /var/log/postgresql/*.log'
    check "no image is left" '[ -z "$(ls /var/lib/dormouse/images 2> /dev/null)" ]';;
esac
exit $FAILED
