#!/bin/sh
# Create the links in /dev/disk/by-id for the present disks, with udev's names, because udev does not run here. For
# disks that are found later, run it by hand. Links:
#   nvme-MODEL_SERIAL (namespace 1)  nvme-MODEL_SERIAL_NAMESPACE  nvme-WWID  ata-MODEL_SERIAL  wwn-0xWWN  mmc-NAME_SERIAL
# and each with -partN. Disks without a hardware identity (null_blk, loop, device mapper) get none.
SYS=${SYS:-/sys}
DEV=${DEV:-/dev}
LINKS=$DEV/disk/by-id

value() { # FILE: print its first line, or an empty line
	line=
	{ read -r line <"$1"; } 2>/dev/null
	printf '%s\n' "$line"
}

clean() { # TEXT: strip spaces and replace characters that are invalid in a name by _
	printf %s "$1" | sed 's/^ *//; s/ *$//; s/  */_/g; s/[^A-Za-z0-9#+.:=@_-]/_/g'
}

ata_identity() { # FOLDER of a disk: print MODEL_SERIAL from page 0x83, which SCSI translation makes for SATA disks
	# The page of a disk without a WWN ends with the serial number: the echo ends its line, which read would miss.
	{ tr -c ' -~' '\n' <"$1/device/vpd_pg83" && echo; } 2>/dev/null | sed -n 's/^DATA     \(.\{40\}\)\(.\{20\}\).*/\1|\2/p' |
		while IFS='|' read -r model serial; do echo "$(clean "$model")_$(clean "$serial")"; done
}

link_to() { # NAME TARGET: a name of two disks must lead to neither, because plans overwrite named disks
	if [ -L "$LINKS/$1" ] && [ "$(readlink "$LINKS/$1")" != "../../$2" ]; then
		echo "disks: more than one disk has the name $1, so it is not used"
		set -- "$1" ambiguous
	fi
	ln -sfn "../../$2" "$LINKS/$1"
}

name_disk() { # NAME: link the disk in $folder and its partitions
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
	mmcblk*[!0-9]*) ;; # boot areas of an eMMC have its serial number too
	mmcblk*) name_mmc ;;
	esac
done
