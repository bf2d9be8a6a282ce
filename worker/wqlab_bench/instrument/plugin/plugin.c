/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCG plugin of instrumented devices: counts instructions and cache lines that move between CPUs, in windows that the
 * guest marks, and carries data out of the guest. guest/wqmark.c is the other end.
 *
 *   -plugin wqlab-instrument.so,output=FILE,cpus=CORE:L3:NODE/...,memory_mib=N[,l2_kib=N][,l3_kib=N]
 *           [,layout=FILE][,costs=FILE][,seed=N]
 *
 * Until the guest asks for tracking, only markers are looked for while code is translated, so that a boot costs what it
 * costs without the plugin. Tracking begins and ends with qemu_plugin_reset(), which discards all translated code.
 *
 * All CPUs run in turn on one host thread (-icount implies it), so that nothing here is locked.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capacity.h"
#include "channel.h"
#include "decode.h"
#include "kernel_data.h"
#include "lines.h"
#include "memory.h"
#include "qemu_api.h"
#include "quirks.h"
#include "spins.h"
#include "timing.h"
#include "topology.h"
#include "translation.h"
#include "window.h"

enum { ACCESS_KINDS = 64, BLOCK_MAX = 512 };

struct access_kind {
	qemu_plugin_meminfo_t info;
	uint8_t size; /* bytes; 0: not known yet */
	bool is_store;
};

static struct {
	qemu_plugin_id_t id;
	enum arch arch;
	struct topology topology;
	struct channel channel;
	struct lines lines;
	struct translation translation;
	struct access_kind kinds[ACCESS_KINDS];
	struct window window;
	struct kernel_data kernel;
	struct table translated; /* blocks of the kernel: program counter, size */
	size_t translated_at_marker; /* how many there were at the last marker */
	struct timing timing; /* off, unless costs are stated */
	struct spins spins;
	bool is_tracking;
	bool is_reset_pending;
	bool is_begin_pending; /* a window opens when tracking has begun */
	unsigned int begin_cpu; /* which asked for it */
} plugin;

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
static void finish(qemu_plugin_id_t id, void *unused);

/* --- markers ------------------------------------------------------------------------------------------------ */

static void open_window(unsigned int cpu)
{
	window_begin(&plugin.window);
	spins_forget(&plugin.spins);
	if (plugin.timing.is_on)
		timing_begin_window(&plugin.timing, cpu);
}

/* Translated code is gone; new code is translated for the new state. */
static void after_reset(qemu_plugin_id_t id)
{
	quirks_after_reset(plugin.topology.cpus);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, finish, NULL);
	plugin.is_reset_pending = false;
	if (plugin.is_begin_pending)
		open_window(plugin.begin_cpu);
	plugin.is_begin_pending = false;
}

static void flush_translation(unsigned int cpu)
{
	translation_flush(&plugin.translation, cpu);
	if (plugin.timing.is_on)
		near_flush(plugin.lines.l1.near[cpu]);
}

static void flush_translations(void)
{
	for (unsigned int cpu = 0; cpu < plugin.topology.cpus; cpu++)
		flush_translation(cpu);
}

static void set_tracking(bool is_tracking)
{
	if (plugin.is_tracking == is_tracking)
		return;
	plugin.is_tracking = is_tracking;
	if (plugin.timing.is_on)
		timing_find_cpus(&plugin.timing);
	lines_forget(&plugin.lines);
	flush_translations();
	plugin.is_reset_pending = true;
	/* QEMU does it before this CPU's next block, and once if it is asked twice. */
	qemu_plugin_reset(plugin.id, after_reset);
}

static void begin_window(unsigned int cpu)
{
	if (plugin.window.is_open)
		channel_write_lost(&plugin.channel, "a window began before the one before it ended");
	set_tracking(true);
	plugin.begin_cpu = cpu;
	if (plugin.is_reset_pending)
		plugin.is_begin_pending = true;
	else
		open_window(cpu);
}

static void end_window(unsigned int cpu)
{
	char *text;
	size_t size;
	FILE *file;

	if (!plugin.window.is_open)
		return channel_write_lost(&plugin.channel, "a window ended that had not begun");
	file = open_memstream(&text, &size);
	if (!file)
		die("no memory for the text of a window");
	window_end(&plugin.window, &plugin.kernel, file);
	if (plugin.timing.is_on)
		timing_print(&plugin.timing, cpu, file);
	spins_print(&plugin.spins, &plugin.kernel, file);
	if (fclose(file))
		die("no memory for the text of a window");
	channel_write_window(&plugin.channel, text, size);
	free(text);
}

static void on_marker(unsigned int cpu, void *marker)
{
	cpu = quirks_cpu(cpu);
	plugin.translated_at_marker = plugin.translated.used;
	switch ((enum marker)(uintptr_t)marker) {
	case MARKER_TRACK:
		return set_tracking(true);
	case MARKER_BEGIN:
		return begin_window(cpu);
	case MARKER_END:
		return end_window(cpu);
	case MARKER_UNTRACK:
		if (plugin.window.is_open)
			end_window(cpu);
		plugin.is_begin_pending = false;
		return set_tracking(false);
	case MARKER_FRAME:
		return channel_begin_frame(&plugin.channel);
	case MARKER_FRAME_END:
		return channel_end_frame(&plugin.channel, false);
	case MARKER_FRAME_END_ODD:
		return channel_end_frame(&plugin.channel, true);
	case MARKER_NONE:
	case MARKER_DATA:
		return;
	}
}

static void on_data(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused)
{
	(void)cpu;
	(void)info;
	(void)unused;
	channel_add(&plugin.channel, vaddr & 0xffff);
}

/* --- instructions ------------------------------------------------------------------------------------------- */

enum { WAITED_COUNTERS = 1 << 12 };

/* Return the counter of the time for which the accesses of an instruction waited, in picoseconds. */
static uint64_t *waited_counter(uint64_t pc)
{
	static struct {
		uint64_t pc, *counter;
	} known[WAITED_COUNTERS];
	unsigned int index = (pc ^ pc >> 12) % WAITED_COUNTERS;

	if (known[index].pc != pc || !known[index].counter) {
		known[index].pc = pc;
		known[index].counter = code_counter(&plugin.window.times, pc, 0);
	}
	return known[index].counter;
}

static bool access_line(unsigned int cpu, struct page *page, uint64_t vaddr, bool is_store, uint64_t pc,
			struct transfer *transfer)
{
	unsigned int index = vaddr >> LINE_SHIFT & (LINES_A_PAGE - 1);
	bool is_moved = lines_access(&plugin.lines, cpu, page, index, is_store, pc, transfer);

	if (is_moved && plugin.window.is_open)
		window_add(&plugin.window, transfer, cpu, is_store, pc, page->number * LINES_A_PAGE + index, vaddr);
	return is_moved;
}

/* A store by the only holder of a line. */
static inline void note_store(unsigned int cpu, struct line *line, uint64_t pc)
{
	lines_stored(line, cpu, pc);
	timing_stored(&plugin.timing, cpu, line);
}

static void access_line_in_time(unsigned int cpu, struct page *page, uint64_t vaddr, bool is_store, uint64_t pc,
				bool is_atomic)
{
	struct line *line = &page->lines[vaddr >> LINE_SHIFT & (LINES_A_PAGE - 1)];
	uint64_t number = page->number * LINES_A_PAGE + (vaddr >> LINE_SHIFT & (LINES_A_PAGE - 1));
	struct transfer transfer;
	int64_t waited = is_atomic ? timing_drain(&plugin.timing, cpu) : 0;

	if (__builtin_expect(lines_is_in_l1(&plugin.lines, cpu, number), 1)) {
		lines_add_near(&plugin.lines, cpu, vaddr, line, number);
		if (!is_store || line->holders == UINT64_C(1) << cpu) {
			if (waited)
				*waited_counter(pc) += waited;
			if (is_store)
				note_store(cpu, line, pc);
			return;
		}
	}
	if (access_line(cpu, page, vaddr, is_store, pc, &transfer))
		waited += timing_wait_for_transfer(&plugin.timing, cpu, line, number, &transfer, is_store, is_atomic);
	else
		waited += timing_wait_for_copy(&plugin.timing, cpu, number, transfer.copy);
	if (is_store)
		timing_stored(&plugin.timing, cpu, line);
	*waited_counter(pc) += waited;
	lines_add_near(&plugin.lines, cpu, vaddr, line, number);
}

/* Ask QEMU for the page of a virtual address. Return NULL for devices and firmware. */
static struct page *find_page(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr)
{
	struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, vaddr);
	struct page *page;

	if (!address || qemu_plugin_hwaddr_is_io(address))
		return NULL;
	page = lines_page(&plugin.lines, qemu_plugin_hwaddr_phys_addr(address) >> PAGE_SHIFT);
	if (page)
		translation_add(&plugin.translation, cpu, vaddr, page);
	return page;
}

/* What QEMU says about `info`, which has few values, remembered because asking takes as long as noting an access. */
static inline const struct access_kind *kind_of(qemu_plugin_meminfo_t info)
{
	struct access_kind *kind = &plugin.kinds[(info ^ info >> 16) % ACCESS_KINDS];

	if (kind->info != info || !kind->size) {
		kind->info = info;
		kind->size = 1u << qemu_plugin_mem_size_shift(info);
		kind->is_store = qemu_plugin_mem_is_store(info);
	}
	return kind;
}

static void note_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, uint64_t pc, bool is_to_write)
{
	const struct access_kind *kind = kind_of(info);
	bool is_store = kind->is_store || is_to_write;
	uint64_t last = vaddr + kind->size - 1;
	struct transfer transfer;
	struct page *page;

	page = translation_find(&plugin.translation, cpu, vaddr);
	if (!page && !(page = find_page(cpu, info, vaddr)))
		return;
	if (plugin.timing.is_on)
		access_line_in_time(cpu, page, vaddr, is_store, pc, is_to_write);
	else
		access_line(cpu, page, vaddr, is_store, pc, &transfer);
	if (__builtin_expect(last >> LINE_SHIFT != vaddr >> LINE_SHIFT, 0) && last >> PAGE_SHIFT == vaddr >> PAGE_SHIFT)
		access_line(cpu, page, last, is_store, pc, &transfer);
}

static inline const struct access_kind *count_access(qemu_plugin_meminfo_t info)
{
	const struct access_kind *kind = kind_of(info);

	plugin.window.loads += !kind->is_store;
	plugin.window.stores += kind->is_store;
	return kind;
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *pc)
{
	count_access(info);
	note_access(quirks_cpu(cpu), info, vaddr, (uintptr_t)pc, false);
}

/* The instruction writes what it loads. With all CPUs on one host thread, QEMU executes it as a load and a store. */
static void on_access_to_write(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *pc)
{
	count_access(info);
	note_access(quirks_cpu(cpu), info, vaddr, (uintptr_t)pc, true);
}

/* An access in virtual time. Most are served by the L1 cache, and change nothing in the model of lines. */
static void on_access_in_time(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *pc)
{
	const struct access_kind *kind = count_access(info);
	struct line *line = near_find(plugin.lines.l1.near[cpu], vaddr);

	if (__builtin_expect(line && vaddr % LINE_BYTES + kind->size <= LINE_BYTES, 1)) {
		if (!kind->is_store)
			return;
		if (__builtin_expect(line->holders == UINT64_C(1) << cpu, 1))
			return note_store(cpu, line, (uintptr_t)pc);
	}
	note_access(cpu, info, vaddr, (uintptr_t)pc, false);
}

static void on_translation_change(unsigned int cpu, void *unused)
{
	(void)unused;
	/* On arm64 an instruction may change the translation of all CPUs. */
	if (plugin.arch == ARCH_ARM64)
		flush_translations();
	else
		flush_translation(quirks_cpu(cpu));
}

static void on_spin(unsigned int cpu, void *unused)
{
	(void)unused;
	spins_begin(&plugin.spins, &plugin.kernel, &plugin.timing, cpu);
}

static void on_spin_end(unsigned int cpu, void *unused)
{
	(void)unused;
	spins_end(&plugin.spins, &plugin.timing, cpu);
}

/* An instruction of the block that is being translated. */
struct decoded {
	struct qemu_plugin_insn *insn;
	uint8_t bytes[INSN_MAX];
	size_t size;
	enum marker marker;
	bool always_completes;
};

static struct decoded decode(struct qemu_plugin_insn *insn)
{
	struct decoded one = { .insn = insn, .size = qemu_plugin_insn_size(insn) };

	one.size = one.size < INSN_MAX ? one.size : INSN_MAX;
	quirks_get_bytes(insn, one.bytes, one.size);
	one.marker = decode_marker(plugin.arch, one.bytes, one.size);
	one.always_completes = one.marker == MARKER_NONE &&
			       decode_always_completes(plugin.arch, one.bytes, one.size);
	return one;
}

static void watch_marker(const struct decoded *one)
{
	if (one->marker == MARKER_DATA)
		qemu_plugin_register_vcpu_mem_cb(one->insn, on_data, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W, NULL);
	else if (one->marker != MARKER_NONE)
		qemu_plugin_register_vcpu_insn_exec_cb(one->insn, on_marker, QEMU_PLUGIN_CB_NO_REGS,
						       (void *)(uintptr_t)one->marker);
}

static void watch_access(const struct decoded *one, const uint8_t *previous)
{
	uint64_t pc = qemu_plugin_insn_vaddr(one->insn);
	qemu_plugin_vcpu_mem_cb_t access;

	if (decode_is_locked(plugin.arch, one->bytes, one->size))
		quirks_count(one->insn, code_counter(&plugin.window.locked, pc, 0), 1);
	if (decode_changes_translation(plugin.arch, one->bytes, one->size))
		qemu_plugin_register_vcpu_insn_exec_cb(one->insn, on_translation_change, QEMU_PLUGIN_CB_NO_REGS, NULL);
	access = decode_loads_to_write(plugin.arch, one->bytes, one->size, previous) ? on_access_to_write :
		 plugin.timing.is_on ? on_access_in_time : on_access;
	/* Not one function for loads and one for stores: QEMU 7.2 would call both for stores. */
	qemu_plugin_register_vcpu_mem_cb(one->insn, access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
					 (void *)(uintptr_t)pc);
}

static void watch_spinlock(const struct decoded *one)
{
	uint64_t pc = qemu_plugin_insn_vaddr(one->insn);

	if (spins_begin_at(&plugin.kernel, pc))
		qemu_plugin_register_vcpu_insn_exec_cb(one->insn, on_spin, QEMU_PLUGIN_CB_NO_REGS, NULL);
	else if (spins_end_at(&plugin.kernel, pc, one->bytes, one->size))
		qemu_plugin_register_vcpu_insn_exec_cb(one->insn, on_spin_end, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

/*
 * Count the instructions of a block, several at once where the count is the same: when the first of them starts, all
 * but the last are known to complete, and the last to start.
 */
static void count_instructions(const struct decoded *block, size_t size, uint64_t *counter)
{
	bool is_last_alone = quirks_may_be_dropped(qemu_plugin_insn_vaddr(block[size - 1].insn));

	for (size_t first = 0, end; first < size; first = end) {
		for (end = first + 1; end < size && end - first < ADDEND_MAX; end++)
			if (!block[end - 1].always_completes || block[end].marker != MARKER_NONE ||
			    (is_last_alone && end == size - 1))
				break;
		quirks_count(block[first].insn, counter, end - first);
	}
}

/* State what a block costs, and count it where the block begins. */
static void time_block(const struct decoded *block, size_t size)
{
	int64_t ps = 0;

	for (size_t i = 0; i < size; i++)
		ps += plugin.timing.costs[decode_class(plugin.arch, block[i].bytes, block[i].size)];
	ps = timing_state_block(ps);
	if (plugin.is_tracking)
		quirks_count(block->insn, code_counter(&plugin.window.times, qemu_plugin_insn_vaddr(block->insn), 0), ps);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static struct decoded block[BLOCK_MAX];
	size_t size = qemu_plugin_tb_n_insns(tb);
	uint64_t pc = qemu_plugin_tb_vaddr(tb), bytes = 0;

	(void)id;
	if (size > BLOCK_MAX)
		die("QEMU translates a block of %zu instructions, %d are the most expected", size, BLOCK_MAX);
	for (size_t i = 0; i < size; i++) {
		block[i] = decode(qemu_plugin_tb_get_insn(tb, i));
		bytes += qemu_plugin_insn_size(block[i].insn);
		watch_marker(&block[i]);
		if (plugin.is_tracking)
			watch_access(&block[i], i ? block[i - 1].bytes : NULL);
		if (plugin.is_tracking && plugin.timing.is_on)
			watch_spinlock(&block[i]);
	}
	if (plugin.timing.is_on)
		time_block(block, size);
	if (plugin.is_tracking)
		count_instructions(block, size, code_counter(&plugin.window.blocks, pc, bytes));
	if (window_is_kernel(pc))
		table_row(&plugin.translated, pc, bytes, 0);
}

/* --- start and end ------------------------------------------------------------------------------------------ */

/*
 * QEMU translates a block when it is to be executed. Those after the last marker are left out: how many of them a guest
 * that switches off executes depends on when the host sees it.
 */
static void write_blocks(void)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		die("no memory for the text of the blocks");
	for (size_t i = 0; i < plugin.translated_at_marker; i++)
		fprintf(file, "%" PRIx64 "\t%" PRIu64 "\n", plugin.translated.rows[i].key[0],
			plugin.translated.rows[i].key[1]);
	if (fclose(file))
		die("no memory for the text of the blocks");
	channel_write_blocks(&plugin.channel, text, size);
	free(text);
}

static void finish(qemu_plugin_id_t id, void *unused)
{
	(void)id;
	(void)unused;
	if (plugin.window.is_open)
		channel_write_lost(&plugin.channel, "the guest ended within a window");
	write_blocks();
	channel_close(&plugin.channel);
}

/* Return the value of `name=value`, or NULL if the argument has another name. */
static const char *value_of(const char *argument, const char *name)
{
	size_t size = strlen(name);

	return !strncmp(argument, name, size) && argument[size] == '=' ? argument + size + 1 : NULL;
}

static uint64_t number_of(const char *argument, const char *text)
{
	char *end;
	uint64_t number = strtoull(text, &end, 10);

	if (!*text || *end || number > UINT32_MAX)
		die("%s: expected a number", argument);
	return number;
}

static void find_arch(const char *target)
{
	if (!strcmp(target, "x86_64"))
		plugin.arch = ARCH_X86_64;
	else if (!strcmp(target, "aarch64"))
		plugin.arch = ARCH_ARM64;
	else
		die("guests of architecture %s are not supported, only x86_64 and aarch64", target);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_version = WQLAB_PLUGIN_API;

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	uint64_t memory_mib = 0, l2_kib = 0, l3_kib = 0, seed = 0;
	const char *output = NULL, *layout = NULL, *costs = NULL, *value;

	for (int i = 0; i < argc; i++) {
		if ((value = value_of(argv[i], "output")))
			output = value;
		else if ((value = value_of(argv[i], "cpus")))
			topology_parse(&plugin.topology, value);
		else if ((value = value_of(argv[i], "memory_mib")))
			memory_mib = number_of(argv[i], value);
		else if ((value = value_of(argv[i], "l2_kib")))
			l2_kib = number_of(argv[i], value);
		else if ((value = value_of(argv[i], "l3_kib")))
			l3_kib = number_of(argv[i], value);
		else if ((value = value_of(argv[i], "layout")))
			layout = value;
		else if ((value = value_of(argv[i], "costs")))
			costs = value;
		else if ((value = value_of(argv[i], "seed")))
			seed = number_of(argv[i], value);
		else
			die("unknown argument %s", argv[i]);
	}
	if (!output || !plugin.topology.cpus || !memory_mib)
		die("output=, cpus= and memory_mib= are needed");
	if (!info->system_emulation || (unsigned int)info->system.max_vcpus != plugin.topology.cpus)
		die("cpus= names %u CPUs, the machine has %d", plugin.topology.cpus, info->system.max_vcpus);
	find_arch(info->target_name);
	plugin.id = id;
	channel_open(&plugin.channel, output);
	if (layout)
		kernel_data_load(&plugin.kernel, layout, quirks_read, plugin.topology.cpus);
	if (costs) {
		timing_init(&plugin.timing, &plugin.topology, costs, seed);
		l2_kib = plugin.timing.costs[COST_L2_KIB];
		l3_kib = plugin.timing.costs[COST_L3_KIB];
	}
	lines_init(&plugin.lines, &plugin.topology, capacity_new(&plugin.topology, l2_kib, l3_kib), memory_mib << 20);
	if (costs)
		lines_add_l1(&plugin.lines, plugin.timing.costs[COST_L1_KIB]);
	flush_translations();
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, finish, NULL);
	return 0;
}
