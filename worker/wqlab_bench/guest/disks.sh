#!/bin/sh
# /dev/disk/by-id for the disks that are there, as udev names them, which does not run here. By hand for later ones.
#   nvme-MODEL_SERIAL (namespace 1)  nvme-MODEL_SERIAL_NAMESPACE  nvme-WWID  ata-MODEL_SERIAL  wwn-0xWWN  mmc-NAME_SERIAL
# and each with -partN. Nothing for disks without an identity of their own (null_blk, loop, device mapper).
SYS=${SYS:-/sys}
DEV=${DEV:-/dev}
LINKS=$DEV/disk/by-id

value() { # FILE: its line, empty without one
	line=
	{ read -r line <"$1"; } 2>/dev/null
	printf '%s\n' "$line"
}

clean() { # TEXT: without spaces around it, and what a name cannot hold is _
	printf %s "$1" | sed 's/^ *//; s/ *$//; s/  */_/g; s/[^A-Za-z0-9#+.:=@_-]/_/g'
}

ata_identity() { # DISK's folder: MODEL_SERIAL, of the text that SATA disks' page 0x83 has since SCSI translation
	tr -c ' -~' '\n' <"$1/device/vpd_pg83" 2>/dev/null | sed -n 's/^DATA     \(.\{40\}\)\(.\{20\}\).*/\1|\2/p' |
		while IFS='|' read -r model serial; do echo "$(clean "$model")_$(clean "$serial")"; done
}

link_to() { # NAME TARGET: a name that two disks have must lead to neither, for what has it is overwritten
	if [ -L "$LINKS/$1" ] && [ "$(readlink "$LINKS/$1")" != "../../$2" ]; then
		echo "disks: $1 is the name of more than one disk: used for none"
		set -- "$1" ambiguous
	fi
	ln -sfn "../../$2" "$LINKS/$1"
}

name_disk() { # NAME: of the disk in folder, and of its partitions
	link_to "$1" "$disk"
	for part in "$folder/$disk"*/partition; do
		[ -e "$part" ] || continue
		of=${part%/partition}
		link_to "$1-part$(value "$part")" "${of##*/}"
	done
}

name_nvme() {
	model=$(clean "$(value "$folder/device/model")") serial=$(clean "$(value "$folder/device/serial")")
	if [ -n "$model" ] && [ -n "$serial" ]; then
		namespace=$(value "$folder/nsid")
		[ "$namespace" != 1 ] || name_disk "nvme-${model}_$serial"
		[ -z "$namespace" ] || name_disk "nvme-${model}_${serial}_$namespace"
	fi
	wwid=$(clean "$(value "$folder/wwid")")
	[ -z "$wwid" ] || name_disk "nvme-$wwid"
}

name_scsi() {
	identity=$(ata_identity "$folder")
	[ -z "$identity" ] || name_disk "ata-$identity"
	wwid=$(value "$folder/device/wwid")
	case $wwid in naa.*) name_disk "wwn-0x${wwid#naa.}" ;; esac
}

name_mmc() {
	name=$(clean "$(value "$folder/device/name")") serial=$(clean "$(value "$folder/device/serial")")
	[ -z "$name" ] || [ -z "$serial" ] || name_disk "mmc-${name}_$serial"
}

rm -rf "$LINKS"
for folder in "$SYS"/class/block/*; do
	disk=${folder##*/}
	[ -e "$folder/device" ] && [ -e "$DEV/$disk" ] || continue
	mkdir -p "$LINKS"
	case $disk in
	nvme*n*) name_nvme ;;
	sd*) name_scsi ;;
	mmcblk*[!0-9]*) ;; # an eMMC's boot areas have the serial number of the whole
	mmcblk*) name_mmc ;;
	esac
done
