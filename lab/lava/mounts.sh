# shellcheck shell=sh disable=SC2154  # the script that sources this file sets `tree`
# Sourced in LAVA's namespace: mount what programs expect of a running system in the root folder `tree`.
mount --make-rprivate /
mount -t proc proc "$tree/proc"
mount --rbind /dev "$tree/dev"
mount --rbind /sys "$tree/sys"
mount -t tmpfs tmpfs "$tree/run"
mkdir -p "$tree/run/postgresql" "$tree/run/lock"
chmod 1777 "$tree/run/lock"
