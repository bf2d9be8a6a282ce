# Sourced in LAVA's namespace: with `tree`, the root to be entered. What programs expect of a running system.
mount --make-rprivate /
mount -t proc proc "$tree/proc"
mount --rbind /dev "$tree/dev"
mount --rbind /sys "$tree/sys"
mount -t tmpfs tmpfs "$tree/run"
mkdir -p "$tree/run/postgresql" "$tree/run/lock"
chmod 1777 "$tree/run/lock"
