#!/bin/sh
# Run a real LAVA for tests and trials: server, database and dispatcher from Debian packages in a separate root folder,
# without systemd, Docker or privileges (user namespaces, subordinate ids).
#   run.sh root             print the folder with the installed LAVA; create it in the cache if it is missing (2 min)
#   run.sh serve STATE PORT run LAVA in the foreground until killed: web and REST on 127.0.0.1:PORT, data in STATE;
#                           write STATE/ready when jobs can be submitted. PORT to PORT+3 must be free.
#   run.sh remove STATE     remove STATE, whose files belong to subordinate ids
# Environment: WQLAB_CACHE; WQLAB_LAVA_OWN_QEMU=1 runs the devices with this machine's QEMU instead of LAVA's;
# WQLAB_LAVA_MIRROR is the mirror of Debian sid (default: the machine's own).
set -eu
cd "$(dirname "$0")"
: "${WQLAB_CACHE:?is not set: run this with lab/as-user.sh}"

die() { printf 'lava: %s\n' "$*" >&2; exit 1; }

# Run a command as root of a user namespace with all subordinate ids, which separate LAVA's users.
in_namespace() { unshare --map-auto --map-root-user --mount --pid --fork --kill-child "$@"; }

can_make_namespaces() {
	command -v newuidmap >/dev/null || die "the package uidmap is missing"
	grep -q "^$(id -un):" /etc/subuid ||
		die "$(id -un) has no subordinate ids: usermod --add-subuids 200000-265535 --add-subgids 200000-265535 $(id -un)"
}

mirror() {
	[ -z "${WQLAB_LAVA_MIRROR:-}" ] || { echo "$WQLAB_LAVA_MIRROR"; return; }
	# Snapshots are excluded, because they contain only the machine's own release.
	apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -v -e snapshot -e security | sort -u | head -n 1
}

make_root() {
	can_make_namespaces
	# The key includes the subordinate ids, because the files belong to them.
	key=$( (cat packages.txt install.sh mounts.sh && grep "^$(id -un):" /etc/subuid) | sha256sum | cut -c1-16)
	root=$WQLAB_CACHE/lava/$key
	if [ ! -e "$root/installed" ]; then
		mkdir -p "$WQLAB_CACHE/lava"
		work=$(mktemp -d "$WQLAB_CACHE/lava/making-XXXXXX")
		chmod 755 "$work"
		site=$(mirror)
		[ -n "$site" ] || die "no Debian mirror among apt's sources: set WQLAB_LAVA_MIRROR"
		mmdebstrap --mode=unshare --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' \
			--aptopt='APT::Install-Recommends "false"' --dpkgopt='path-exclude=/usr/share/man/*' \
			--include="$(tr ' ' , < packages.txt)" sid "$work/tree" "deb $site sid main" > "$work/log" 2>&1 ||
			{ tail -n 5 "$work/log" >&2; die "LAVA could not be installed; the whole log is $work/log"; }
		in_namespace sh -c 'tree=$1 && cp install.sh "$tree/" && . ./mounts.sh && exec chroot "$tree" /bin/sh /install.sh' \
			_ "$work/tree" >> "$work/log" 2>&1 ||
			{ tail -n 5 "$work/log" >&2; die "LAVA could not be set up; the whole log is $work/log"; }
		touch "$work/installed"
		mv -T "$work" "$root" 2>/dev/null || in_namespace rm -rf "$work" # another process was faster
	fi
	echo "$root/tree"
}

case ${1:-} in
root) make_root ;;
serve)
	root=$(make_root)
	state=$2 port=$3
	mkdir -p "$state/upper" "$state/work" "$state/merged"
	rm -f "$state/ready"
	# The installed root stays unchanged: this LAVA's changes go to its state folder.
	exec unshare --map-auto --map-root-user --mount --pid --fork --kill-child sh -c '
		root=$1 state=$2 port=$3 tree=$2/merged
		mount -t overlay overlay -o "lowerdir=$root,upperdir=$state/upper,workdir=$state/work,userxattr" "$tree"
		cp start.sh register.shell "$tree/"
		. ./mounts.sh
		if [ -n "${WQLAB_LAVA_OWN_QEMU:-}" ]; then
			mkdir -p "$tree/host/usr" && mount --rbind /usr "$tree/host/usr" && cp qemu.sh "$tree/usr/local/bin/qemu-system-x86_64"
		fi
		mkdir -p "$tree/state" && mount --bind "$state" "$tree/state"
		exec chroot "$tree" /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			/bin/bash /start.sh "$port"' _ "$root" "$state" "$port"
	;;
remove) in_namespace rm -rf "$2" ;;
*) die "usage: run.sh root | serve STATE PORT | remove STATE" ;;
esac
