#!/bin/sh
# Captures the kernel's cgroup files in a virtual machine (qemu, emulated), where
# every controller can be mounted as the layout wants it.
# usage: capture.sh v1|v2 KERNEL MODULES OUT
#   KERNEL   a bzImage      MODULES   its /lib/modules folder      OUT   where to unpack
set -eu
mode=$1 kernel=$2 modules=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/root" "$work/root/dev" "$work/root/proc" "$work/root/sys" "$out"
(cd "$here" && CGO_ENABLED=0 go build -o "$work/root/init" ./init.go)
(cd "$here/../../../../.." && CGO_ENABLED=0 go build -o "$work/root/guest" ./cmd/guest)
for m in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
	find "$modules" -name "$m.ko" -exec cp {} "$work/root/" \;
done
(cd "$work/root" && find . | cpio -o -H newc --quiet) >"$work/initrd"
truncate -s 16M "$work/disk" "$work/scratch"
timeout 300 qemu-system-x86_64 -accel tcg -cpu max -m 512 -smp 2 -nographic -no-reboot \
	-kernel "$kernel" -initrd "$work/initrd" -append "console=ttyS0 psi=1 quiet panic=-1 capture=$mode" \
	-drive "file=$work/disk,format=raw,if=virtio" -drive "file=$work/scratch,format=raw,if=virtio"
tar -xf "$work/disk" -C "$out"
