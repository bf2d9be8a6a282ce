#!/bin/sh
# wqlab-crash-kernel KERNEL COMMAND_LINE: load KERNEL into the memory that crashkernel= reserved. When the running kernel
# crashes, KERNEL starts with `crash_init`, which prints the log of the crashed kernel.
# Its root filesystem is made of files of this one, and is small because it has to fit into that memory.
set -eu
SYS=${SYS:-/sys}
PROC=${PROC:-/proc}
INIT=${INIT:-/usr/lib/wqlab/crash_init}
LOG_READER=${LOG_READER:-/usr/sbin/vmcore-dmesg}
SHELL_PROGRAM=${SHELL_PROGRAM:-/bin/busybox}

reserved=0
{ read -r reserved <"$SYS/kernel/kexec_crash_size"; } 2>/dev/null || :
if [ "$reserved" = 0 ]; then
	echo "the running kernel reserved no memory for a crash kernel" >&2
	exit 1
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/root/bin" "$folder/root/dev" "$folder/root/proc" "$folder/root/usr/sbin"
cp "$INIT" "$folder/root/init"
cp "$SHELL_PROGRAM" "$folder/root/bin/busybox"
cp "$LOG_READER" "$folder/root/usr/sbin/vmcore-dmesg"
# The loader lists itself and the libraries that it would load.
for library in $(LD_TRACE_LOADED_OBJECTS=1 "$LOG_READER" | tr -s '[:space:]' '\n' | grep '^/'); do
	mkdir -p "$folder/root/${library%/*}"
	cp "$library" "$folder/root/$library"
done
(cd "$folder/root" && find . | cpio -o -H newc) >"$folder/rootfs" 2>/dev/null
kexec -p "$1" --initrd="$folder/rootfs" --command-line="$2"
# Otherwise the kernel goes on after most oopses. Not before, because an oops without a crash kernel would stop it silently.
echo 1 >"$PROC/sys/kernel/panic_on_oops"
