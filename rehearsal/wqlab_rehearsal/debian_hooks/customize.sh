#!/bin/sh
# mmdebstrap runs this for the folder $1 after it installed all packages.
set -e
echo dual-boot > "$1/etc/hostname"
echo 00000000000040008000000000000012 > "$1/etc/machine-id"
echo 'LABEL=own / ext4 errors=remount-ro 0 1' > "$1/etc/fstab"
# By its MAC address, as the golden system asks: both get the address that is reserved for the card.
cat > "$1/etc/systemd/network/lab.network" <<END
[Match]
Type=ether

[Network]
DHCP=ipv4
LinkLocalAddressing=no
IPv6AcceptRA=no

[DHCPv4]
ClientIdentifier=mac
END
chroot "$1" systemctl --quiet enable systemd-networkd.service
# Nobody needs these here, and each takes emulated CPUs a part of the start.
chroot "$1" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
	e2scrub_reap.service fstrim.timer getty@tty1.service systemd-networkd-wait-online.service
# One host key is enough for sshd; RSA keys take longest to load.
rm -f "$1"/etc/ssh/ssh_host_rsa* "$1"/etc/ssh/ssh_host_ecdsa*
mkdir -p "$1/boot/grub" "$1/root/.ssh"
chmod 700 "$1/root/.ssh"
