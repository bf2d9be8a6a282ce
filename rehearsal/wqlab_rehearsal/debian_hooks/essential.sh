#!/bin/sh
# mmdebstrap runs this for the folder $1 before it installs the kernel. The initramfs has only the modules of the
# machine's disk: with Debian's default (most) emulated CPUs take long to unpack it.
set -e
mkdir -p "$1/etc/initramfs-tools/conf.d"
echo MODULES=list > "$1/etc/initramfs-tools/conf.d/disk"
printf '%s\n' ahci sd_mod ext4 > "$1/etc/initramfs-tools/modules"
