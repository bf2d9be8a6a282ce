#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Readers read pages of a dm-verity device, or of a file of a compressed erofs on it, at once. dm-verity verifies each read
# in a work (verity_work) or, if asked to, in a bottom half first (verity_bh_work); erofs decompresses in the reader, in the
# context that completes the read, or in a work. A traced repetition counts these works and takes where they ran.
# usage: verity-erofs.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"

export LC_ALL=C # pieces of a file are hashed in the order of their names
SYS=${SYS:-/sys}
PROC=${PROC:-/proc}
NAME=wqlab-verity
DEVICE=${DEVICE:-/dev/mapper/$NAME}
MOUNT=${MOUNT:-/mnt/wqlab-erofs}
UUID=77716c61-6200-4572-8f66-730000000001 # of the erofs
BLOCK=4096
# Pages are read at this distance. mkfs.erofs compresses about two pages into each block, so a read of one page brings its
# neighbours into the page cache too; here no reader finds its page there.
STRIDE_K=16

# --- data and hashes ---

size_data() { # set data_mib, and scaled to the reason if it is less than the plan requests
	data_mib=$DATA_MIB scaled=
	# File, image and disk exist at once: twice the size of the file. The rest is for the page cache of the readers.
	most=$(($(memory_available_mib) / 4))
	[ "$data_mib" -gt "$most" ] || return 0
	scaled=" (scaled to this device's memory; the plan asks for $DATA_MIB MiB)"
	data_mib=$most
	[ $((data_mib * 1024 / STRIDE_K)) -ge $((4 * $(nproc))) ] ||
		lack "not enough memory: a file of $data_mib MiB has no page for each of $((4 * $(nproc))) readers"
}

make_image() { # make a file that compresses to half its size, and a compressed erofs with it; keep their sums and sizes
	size_data
	rm -rf "$WORK/content" "$WORK/image"
	mkdir -p "$WORK/content"
	# The same content in each boot.
	fio --name=content --filename="$WORK/content/data" --rw=write --bs=1M --size="${data_mib}M" --ioengine=psync --randseed=1 \
		--refill_buffers --buffer_compress_percentage=50 --buffer_compress_chunk=4k --output="$WORK/fio.log" ||
		fail infrastructure "fio cannot write the file: $(tail -n 1 "$WORK/fio.log")"
	sum "$WORK/content/data" >"$WORK/data.sum"
	# Without a time or identifier of this boot, so that each boot has the same image.
	mkfs.erofs -zlz4 -T0 -U "$UUID" "$WORK/image" "$WORK/content" >"$WORK/mkfs.log" 2>&1 ||
		fail infrastructure "mkfs.erofs fails: $(tail -n 1 "$WORK/mkfs.log")"
	rm -r "$WORK/content"
	size=$(stat -c %s "$WORK/image")
	[ $((size % BLOCK)) = 0 ] || fail infrastructure "mkfs.erofs wrote an image of $size bytes, which are no whole blocks"
	sum "$WORK/image" >"$WORK/image.sum"
	echo "$((size / BLOCK))" >"$WORK/blocks"
	echo "$data_mib" >"$WORK/data_mib"
	record fact file "$data_mib MiB, lz4, $((size * 100 / (data_mib * 1048576))) % of it in erofs$scaled"
}

sum() { sha256sum "$1" | cut -c1-64; }

hash_blocks() { # FILE: print the SHA-256 of each of its blocks, in binary
	count=$(($(stat -c %s "$1") / BLOCK)) first=0
	while [ "$first" -lt "$count" ]; do
		rm -rf "$WORK/pieces"
		mkdir "$WORK/pieces"
		# Some at a time: they take memory, and one call of sha256sum has all of them as arguments.
		dd if="$1" bs="$BLOCK" skip="$first" count=1024 2>/dev/null | (cd "$WORK/pieces" && split -a 3 -b "$BLOCK" -)
		sha256sum "$WORK"/pieces/* | cut -c1-64 | xxd -r -p
		first=$((first + 1024))
	done
	rm -rf "$WORK/pieces"
}

# As veritysetup makes it without a superblock, with version 1 and no salt: each level has the hashes of the blocks of the
# level below it, 128 in a block that zeros fill up; the level of one block comes first.
hash_tree() { # FILE: write its hashes to $WORK/tree, and the hash of the first of these blocks to $WORK/root
	level=$1 number=0
	rm -f "$WORK"/level.*
	: >"$WORK/tree"
	while :; do
		hash_blocks "$level" >"$WORK/level.$number"
		level=$WORK/level.$number
		size=$(stat -c %s "$level")
		truncate -s $(((size + BLOCK - 1) / BLOCK * BLOCK)) "$level"
		[ "$size" -gt "$BLOCK" ] || break
		number=$((number + 1))
	done
	sum "$level" >"$WORK/root"
	while [ "$number" -ge 0 ]; do
		cat "$WORK/level.$number" >>"$WORK/tree"
		number=$((number - 1))
	done
	rm -f "$WORK"/level.*
}

make_disk() { # put the image and its hashes on a memory disk
	blocks=$(cat "$WORK/blocks")
	disk_mib=$((($(stat -c %s "$WORK/image") + $(stat -c %s "$WORK/tree")) / 1048576 + 1))
	node=$(disk_node 0) || exit 1
	# Completes from a timer's interrupt, like real hardware: a read that completes within its submission needs no work of erofs.
	disk=$(memory_disk wqlab-verified "$disk_mib" "$(nproc)" 2 "$node") || exit 1
	[ -z "$node" ] || fill_on_node "$disk" "$node" "$disk_mib"
	cat "$WORK/image" "$WORK/tree" | dd of="$disk" bs=1M iflag=fullblock conv=notrunc,fsync 2>"$WORK/dd.log" ||
		fail infrastructure "cannot write the memory disk: $(tail -n 1 "$WORK/dd.log")"
	rm "$WORK/image" "$WORK/tree"
	echo "$disk" >"$WORK/disk"
	record fact disk "null_blk memory_backed, $disk_mib MiB, $(nproc) queues, completion by timer${node:+, home node $node}"
}

# --- the device ---

open_verity() { # VERIFY: make the dm-verity device with the setting `default` or `tasklet`; false if the kernel refuses
	blocks=$(cat "$WORK/blocks") disk=$(cat "$WORK/disk")
	table="0 $((blocks * BLOCK / 512)) verity 1 $disk $disk $BLOCK $BLOCK $blocks $blocks sha256 $(cat "$WORK/root") -"
	[ "$1" = default ] || table="$table 1 try_verify_in_tasklet"
	dmsetup create --readonly "$NAME" --table "$table" 2>"$WORK/dmsetup.log" || return 1
	has_node || dmsetup mknodes
	has_node || fail infrastructure "no device node $DEVICE"
}

has_node() { [ -b "$DEVICE" ]; }

refusal() { # print what the kernel says about a dm-verity table
	dmesg 2>/dev/null | grep 'verity' | tail -n 1 | grep . || tail -n 1 "$WORK/dmsetup.log"
}

used_verify() { # print the setting that the device has
	case " $(dmsetup table "$NAME") " in *' try_verify_in_tasklet '*) echo tasklet ;; *) echo default ;; esac
}

health() { # print V, or C once dm-verity has found a block that does not have its hash
	dmsetup status "$NAME" | $AWK '{ print $4 }'
}

close_all() { # unmount and remove what this script made; false if it is still there
	! grep -q " $MOUNT " "$PROC/mounts" || umount "$MOUNT" || return 1
	! dmsetup table "$NAME" >/dev/null 2>&1 || dmsetup remove "$NAME" || return 1
	rm -f "$DEVICE" # without udev, dmsetup leaves a node that it made by mknodes
}

close_device() { close_all || fail infrastructure "cannot unmount $MOUNT or remove $DEVICE"; }

# On every way out. A signal ends dash without a trap of EXIT.
close_at_exit() {
	trap 'close_all || :' EXIT
	trap 'exit 1' HUP INT TERM
}

read_block() { dd if="$DEVICE" of=/dev/null bs="$BLOCK" skip="$1" count=1 2>/dev/null; }

check_refused() { # VERIFY BLOCK: fail unless a read of this block, which was changed, is refused and counted, and its neighbour's is not
	[ "$(health)" = V ] || fail kernel "dm-verity reports corruption before anything was read (verify=$1): status $(health)"
	! read_block "$2" || fail kernel "dm-verity returns block $2, whose content does not have its hash (verify=$1)"
	[ "$(health)" = C ] || fail kernel "dm-verity refuses a changed block and reports no corruption (verify=$1): status $(health)"
	read_block 0 || fail kernel "dm-verity refuses block 0, which is intact (verify=$1)"
}

check_corruption() { # change a block of the disk below dm-verity, check that its reads are refused, and restore it
	disk=$(cat "$WORK/disk")
	changed=$(($(cat "$WORK/blocks") / 2)) refused=
	dd if="$disk" of="$WORK/intact" bs="$BLOCK" skip="$changed" count=1 2>/dev/null
	# Only its first byte.
	{ head -c 1 "$WORK/intact" | tr '\000-\377' '\001-\377\000'; tail -c +2 "$WORK/intact"; } >"$WORK/altered"
	! cmp -s "$WORK/intact" "$WORK/altered" || fail infrastructure "cannot change block $changed of $disk"
	write_block "$WORK/altered" "$changed"
	for verify in default tasklet; do
		if ! open_verity "$verify"; then
			[ "$verify" = tasklet ] || fail infrastructure "the kernel refuses a dm-verity table: $(refusal)"
			continue
		fi
		check_refused "$verify" "$changed"
		close_device
		refused="${refused:+$refused, }$verify"
	done
	write_block "$WORK/intact" "$changed"
	record fact 'corruption check' "block $changed of $(cat "$WORK/blocks") changed: refused and reported (verify: $refused)"
}

write_block() { # FILE BLOCK: write it to the disk
	dd if="$1" of="$disk" bs="$BLOCK" seek="$2" count=1 conv=notrunc,fsync 2>/dev/null ||
		fail infrastructure "cannot write block $2 of $disk"
}

setup() {
	need fio dmsetup mkfs.erofs split sha256sum xxd
	check_jobs # here already, so that the plan is unsupported without these CPUs
	# Each measurement reports whether the modules are available.
	load_module dm_verity && load_module erofs || return 0
	grep -q '^name *: sha256$' "$PROC/crypto" || lack "this kernel has no SHA-256 for dm-verity (CONFIG_CRYPTO_SHA256)"
	mkdir -p "$MOUNT"
	make_image
	hash_tree "$WORK/image"
	make_disk
	close_at_exit
	check_corruption
}

# --- settings ---

knob() { # print the file of this erofs' sync_decompress
	echo "$SYS/fs/erofs/dm-$(dmsetup info -c --noheadings -o minor "$NAME" | tr -d ' ')/sync_decompress"
}

place() { # make and mount the device with the settings; false, with a record, if the kernel does not
	if ! open_verity "$SETTING_VERIFY"; then
		[ "$SETTING_VERIFY" != default ] || fail infrastructure "the kernel refuses a dm-verity table: $(refusal)"
		record unsupported '*' "kernel $(uname -r) refuses try_verify_in_tasklet: $(refusal)"
		return 1
	fi
	record setting verify "$(used_verify)"
	# Also where readers read the dm-verity device itself, so that both settings are what they are said to be.
	mount -t erofs -o ro "$DEVICE" "$MOUNT" || fail kernel "erofs does not mount: $(dmesg | grep erofs | tail -n 1)"
	choose_decompression
}

choose_decompression() { # apply SETTING_SYNC_DECOMPRESS, which a mount begins with its default of
	[ "$SETTING_SYNC_DECOMPRESS" != default ] || { record setting sync_decompress default; return 0; }
	file=$(knob)
	case $SETTING_SYNC_DECOMPRESS in on) number=1 ;; off) number=2 ;; esac
	if [ ! -w "$file" ]; then
		record unsupported '*' "kernel $(uname -r) has no sync_decompress of erofs in sysfs"
		return 1
	fi
	echo "$number" >"$file" && [ "$(cat "$file")" = "$number" ] && record setting sync_decompress "$SETTING_SYNC_DECOMPRESS" && return 0
	record unsupported '*' "kernel $(uname -r) has sync_decompress $(cat "$file") when $number is written"
	return 1
}

settings_after() { # report the settings after the workload
	record setting_after verify "$(used_verify)"
	file=$(knob)
	[ -r "$file" ] || { record setting_after sync_decompress default; return 0; }
	found=$(cat "$file")
	[ "$SETTING_SYNC_DECOMPRESS$TARGET" != defaulterofs ] || record fact "sync_decompress after $SCENARIO" "$found"
	# The kernel's default begins as 0, and becomes 1 by itself once a read completed in an interrupt.
	case $SETTING_SYNC_DECOMPRESS$found in default[01] | on1 | off2) found=$SETTING_SYNC_DECOMPRESS ;; esac
	record setting_after sync_decompress "$found"
}

# --- load ---

readers() { # print the number of readers
	case $READERS in one) echo 1 ;; cpus) nproc ;; fourfold) echo $((4 * $(nproc))) ;; esac
}

regions() { # READS: set jobs, the number of readers, each, what one reads, region_k, where, and distance_k; false, with a record, if they do not fit
	jobs=$(readers)
	if [ "$TARGET" = verity ]; then
		distance_k=$((BLOCK / 1024)) pages=$(cat "$WORK/blocks")
	else
		distance_k=$STRIDE_K pages=$(($(cat "$WORK/data_mib") * 1024 / STRIDE_K))
	fi
	fit=$((pages / jobs)) each=$(($1 / jobs))
	[ "$each" -ge "$READS_EACH" ] || each=$READS_EACH
	[ "$each" -le "$fit" ] || each=$fit
	region_k=$((fit * distance_k))
	[ "$each" -ge 1 ] && return 0
	record unsupported '*' "$pages pages are too few for $jobs readers"
	return 1
}

workload() { # each reader reads pages of its own region, each of them once
	if [ "$TARGET" = verity ]; then
		set -- --filename="$DEVICE" --rw=randread
	else
		set -- --filename="$MOUNT/data" --rw="read:$((STRIDE_K - BLOCK / 1024))k"
	fi
	bind=$(job_cpus) || exit 1
	# No readahead of the kernel, which would bring in other pages. settle has emptied the page cache.
	# shellcheck disable=SC2086  # several arguments, or none
	run_fio --name=readers "$@" --bs=4k --ioengine=psync --direct=0 --fadvise_hint=random --invalidate=0 --readonly \
		--allow_file_create=0 --numjobs="$jobs" --size="${region_k}k" --offset_increment="${region_k}k" --number_ios="$each" \
		--group_reporting $bind
}

check_content() { # fail if what was read is not what was written: the pages that readers got are still in the page cache
	if [ "$TARGET" = verity ]; then file=$DEVICE wanted=$(cat "$WORK/image.sum"); else file=$MOUNT/data wanted=$(cat "$WORK/data.sum"); fi
	found=$(sum "$file")
	[ -n "$found" ] || fail kernel "$file cannot be read to its end after the readers: $(dmesg | tail -n 1)"
	[ "$found" = "$wanted" ] || fail kernel "$file has other content than was written: SHA-256 $found instead of $wanted"
	[ "$(health)" = V ] || fail kernel "dm-verity reports corruption of an intact disk: status $(health)"
	record fact "content of $TARGET" "read back whole after each repetition, SHA-256 $(echo "$found" | cut -c1-16) as written"
}

# --- trace ---

trace_start() {
	trace_works traced 'workqueue ~ "kverityd*" || workqueue ~ "erofs_*" || workqueue ~ "events_bh*"' || return 1
	trace_write tracing_on 1
}

# What starts without having been queued on one of these workqueues belongs to another one. Works of other users of the
# workqueue of bottom halves have other functions.
reduce_trace() {
	$AWK "$TRACE_FUNCTIONS"'
	function of(worker) { return worker in works ? works[worker] : 0 }
	/^#/ { next }
	/ workqueue_queue_work: / {
		name = field("function")
		if (name ~ /^0x/) unnamed = 1
		if (name !~ /^(verity_|z_erofs_)/) next
		w = item(); queue(w); what[w] = name; works[what[w]]++; queued++; next
	}
	/ workqueue_execute_start: / {
		w = item()
		if (!(w in from)) next
		started++
		if (what[w] ~ /^(verity_work|verity_bh_work|z_erofs_decompressqueue_work)$/) {
			n[from[w] " " cpu()]++
			wait[waited_us(w)]++
		}
		end_wait(w); next
	}
	END {
		if (unreadable(unnamed)) exit
		print_counts("pairs", n); print_counts("histogram queue_to_start_us", wait)
		printf "value\tverify_works\t%d\nvalue\tbh_works\t%d\nvalue\tdecompress_works\t%d\n", of("verity_work"), of("verity_bh_work"), of("z_erofs_decompressqueue_work")
		printf "value\tprefetch_works\t%d\nvalue\tworks_queued\t%d\nvalue\tworks_started\t%d\n", of("verity_prefetch_io"), queued, started
	}' "$TRACING/trace" >&3
}

trace_stop() {
	trace_end
	trace_write events/workqueue/workqueue_queue_work/filter 0
}

kernel_threads() { # true if erofs decompresses on kernel threads of its own, one for each CPU
	grep -qs '^erofs_worker/' "$PROC"/[0-9]*/comm
}

# --- measuring ---

measure() {
	load_module dm_verity && load_module erofs || return 0
	close_device
	close_at_exit
	place || return 0
	if [ "${TRACE:-0}" = 1 ]; then reads=$TRACED_READS; else reads=$READS; fi
	regions "$reads" || return 0
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		! kernel_threads || record unsupported decompress_works_per_1000_reads "this kernel's erofs decompresses on kernel threads of its own"
		trace_start || return 0
		workload
		trace_stop
	else
		times=$(cpu_times)
		workload
		cpu_records "$times" "$(cpu_times)"
	fi
	settings_after
	check_content
	close_device
}

teardown() {
	close_device
	drop_memory_disk wqlab-verified
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
