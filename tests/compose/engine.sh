#!/bin/bash
# engine.sh FOLDER: run a Docker Engine in the foreground, for tests on a machine without one. Needs root. Debian 13's
# packages are installed in FOLDER/root the first time (a minute). Images and volumes are in FOLDER/data. Its mount and
# process namespaces, which end with this process, have FOLDER as /run/host; FOLDER/started says that they can be entered.
set -eu
folder=$1
root=$folder/root
if [ ! -e "$root/usr/sbin/dockerd" ]; then
    site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep debian | grep -v -e security -e snapshot | head -n 1)
    rm -rf "$root"
    mkdir -p "$folder"
    mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
        --include=docker.io,docker-cli,docker-compose,docker-buildx,iptables,ca-certificates,git \
        trixie "$root" "deb $site trixie main"
    mkdir -p "$root/oldroot" "$root/var/lib/docker"
fi
mkdir -p "$folder/data"
# Not chroot: the engine's `docker import` and `docker exec` need the root of its namespace.
exec unshare --mount --propagation private --pid --fork --kill-child bash -euc '
    folder=$1
    mount --bind "$folder/root" "$folder/root"
    cd "$folder/root"
    mount -t proc proc proc
    mount --rbind /sys sys
    mount --rbind /dev dev
    mount -t tmpfs tmpfs run
    mount -t tmpfs tmpfs tmp
    mount --bind "$folder/data" var/lib/docker
    mkdir run/host
    mount --bind "$folder" run/host
    pivot_root . oldroot
    cd /
    umount -l /oldroot
    touch /run/host/started
    exec dockerd > /run/host/dockerd.log 2>&1
' engine "$folder"
