#!/bin/sh
# In LAVA's root: run the host machine's QEMU with the host's libraries; the network card's ROM is LAVA's.
usr=/host/usr lib=/host/usr/lib/x86_64-linux-gnu
export QEMU_MODULE_DIR=$lib/qemu
exec $lib/ld-linux-x86-64.so.2 --library-path "$lib:$lib/pulseaudio" $usr/bin/qemu-system-x86_64 \
	-L $usr/share/qemu -L $usr/share/seabios -L /usr/share/qemu "$@"
