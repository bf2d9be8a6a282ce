#!/bin/sh
# A real LAVA for tests and trials: server, database and dispatcher of Debian's packages in a root of their own, without
# systemd, Docker or privileges (user namespaces, subordinate ids).
#   run.sh root             prints the folder with the installed LAVA; makes it in the cache when it is not there (2 min)
#   run.sh serve STATE PORT runs it in the foreground until killed: web and REST on 127.0.0.1:PORT, what changes in STATE;
#                           writes STATE/ready when jobs can be submitted. PORT to PORT+3 must be free.
#   run.sh remove STATE     removes STATE, whose files belong to subordinate ids
# Environment: WQLAB_LAVA_OWN_QEMU=1 has its devices run by this machine's QEMU instead of LAVA's; WQLAB_CACHE; WQLAB_LAVA_MIRROR, where Debian sid is taken from (default: the machine's own).
set -eu
cd "$(dirname "$0")"
: "${WQLAB_CACHE:?is not set: run this by lab/as-user.sh}"

die() { printf 'lava: %s\n' "$*" >&2; exit 1; }

# Root of a user namespace with all subordinate ids, in which LAVA's several users are kept apart.
in_namespace() { unshare --map-auto --map-root-user --mount --pid --fork --kill-child "$@"; }

can_make_namespaces() {
	command -v newuidmap >/dev/null || die "the package uidmap is missing"
	grep -q "^$(id -un):" /etc/subuid ||
		die "$(id -un) has no subordinate ids: usermod --add-subuids 200000-265535 --add-subgids 200000-265535 $(id -un)"
}

mirror() {
	[ -z "${WQLAB_LAVA_MIRROR:-}" ] || { echo "$WQLAB_LAVA_MIRROR"; return; }
	# Not a snapshot: those are of the machine's own release.
	apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -v -e snapshot -e security | sort -u | head -n 1
}

make_root() {
	can_make_namespaces
	# Its files belong to the subordinate ids that made it.
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
		mv -T "$work" "$root" 2>/dev/null || in_namespace rm -rf "$work" # somebody else was first
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
	# What the installed root holds stays as it is; what this LAVA changes goes to its state.
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
