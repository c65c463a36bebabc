#!/bin/bash
# setup-root.sh ROOT SUITE MIRROR AGENT KERNELS PACKAGE…: makes a debootstrapped directory a machine for checks. It
# gets an agent, the user demo (who has a service manager without a login), swap and zram on demand, and a second
# kernel from backports if the mirror has one. KERNELS/stock and KERNELS/backports get the kernels to boot.
set -euo pipefail
root=$1 suite=$2 mirror=$3 agent=$4 kernels=$5
shift 5
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"; chmod 755 "$root/usr/sbin/policy-rc.d"
trap 'umount -l "$root/proc" 2> /dev/null || true' EXIT
mount -t proc proc "$root/proc"

# A small initrd: what a virtual machine boots with.
sed -i 's/^MODULES=.*/MODULES=list/' "$root/etc/initramfs-tools/initramfs.conf"
printf 'virtio_pci\nvirtio_blk\next4\n' >> "$root/etc/initramfs-tools/modules"
stock=$(ls "$root/boot" | sed -n 's/^vmlinuz-//p' | sort -V | tail -1)
inside update-initramfs -u -k "$stock"

echo "deb $mirror $suite main" > "$root/etc/apt/sources.list"
cp /etc/resolv.conf "$root/etc/resolv.conf" 2> /dev/null || true
for file in /etc/apt/apt.conf.d/*proxy*; do [ ! -e "$file" ] || cp "$file" "$root/etc/apt/apt.conf.d/"; done
inside apt-get update
inside apt-get clean
installed=()
for name in "$@"; do ! inside dpkg-query -W -f '${db:Status-Status}' "$name" 2> /dev/null | grep -qx installed || installed+=("$name"); done
inside apt-get install -y --no-install-recommends --download-only --reinstall "${installed[@]}"
mkdir -p "$root/var/cache/machine-packages"
mv "$root"/var/cache/apt/archives/*.deb "$root/var/cache/machine-packages/"
echo "deb $mirror $suite-backports main" > "$root/etc/apt/sources.list.d/backports.list"
if ! { inside apt-get update && inside apt-get install -y --no-install-recommends -t "$suite-backports" linux-image-amd64; }; then
  echo "no kernel from $suite-backports"
fi
rm -f "$root"/var/cache/apt/archives/*.deb "$root/etc/apt/sources.list.d/backports.list" "$root"/etc/apt/apt.conf.d/*proxy*
rm -rf "$root"/var/lib/apt/lists/*

install -m 755 "$agent" "$root/usr/local/sbin/machine-agent"
cat > "$root/etc/systemd/system/machine-agent.service" <<'E'
[Unit]
Description=Runs the commands of the checks
DefaultDependencies=no
After=systemd-udevd.service systemd-remount-fs.service
[Service]
ExecStart=/usr/local/sbin/machine-agent
Restart=always
KillMode=process
OOMScoreAdjust=-1000
[Install]
WantedBy=multi-user.target
E
ln -sf ../machine-agent.service "$root/etc/systemd/system/multi-user.target.wants/machine-agent.service"
echo 'LABEL=root / ext4 defaults 0 1' > "$root/etc/fstab"
echo machine > "$root/etc/hostname"
echo '127.0.0.1 localhost machine' > "$root/etc/hosts"
inside useradd -m -u 1000 -s /bin/bash demo
echo 'demo ALL=(ALL) NOPASSWD:ALL' > "$root/etc/sudoers.d/demo"
mkdir -p "$root/var/lib/systemd/linger" "$root/var/log/journal" "$root/etc/systemd/journald.conf.d"
touch "$root/var/lib/systemd/linger/demo"
printf '[Journal]\nStorage=persistent\nRateLimitBurst=0\n' > "$root/etc/systemd/journald.conf.d/machine.conf"
for unit in redis-server nginx postgresql; do inside systemctl disable "$unit" || true; done
# There is no network: these would only take time from the checks.
for unit in apt-daily.timer apt-daily-upgrade.timer man-db.timer e2scrub_all.timer e2scrub_reap.service dpkg-db-backup.timer; do
  inside systemctl mask "$unit" || true
done

for kernel in $(ls "$root/boot" | sed -n 's/^vmlinuz-//p'); do
  name=backports; [ "$kernel" != "$stock" ] || name=stock
  mkdir -p "$kernels/$name"
  cp "$root/boot/vmlinuz-$kernel" "$kernels/$name/vmlinuz"
  cp "$root/boot/initrd.img-$kernel" "$kernels/$name/initrd"
  echo "$kernel" > "$kernels/$name/release"
done
rm -f "$root/usr/sbin/policy-rc.d"
