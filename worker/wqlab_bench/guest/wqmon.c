/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sample the counters of all workqueues of the running kernel once a second until SIGTERM.
 *
 *   wqmon LAYOUT SERIES [KCORE KALLSYMS]
 *
 * LAYOUT has the offsets of this kernel's structures as KEY VALUE lines. For each sample, SERIES gets a line for each
 * workqueue whose counters have changed, separated by tabs: seconds since the start, name, and the values of `columns`,
 * counted from the start. "watching" on standard output means that sampling has begun. On failure, the reason goes to
 * standard error and the exit status is 1.
 *
 * The kernel changes the lists while they are read without its locks, so every pointer may be stale. A list that cannot
 * be read to its end ends the sample, but not this program.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { STARTED, COMPLETED, STATS = 8, PAGE = 4096, PAGES = 1024, SEGMENTS = 512, NAME = 64,
       MAX_WQS = 4096, MAX_PWQS = 65536, ARRAY_MAX = 64, MAX_SAMPLES = 7200 };

static const char *const stat_keys[STATS] = { "stat.started", "stat.completed", "stat.cpu_us", "stat.cpu_intensive",
	"stat.cm_wakeups", "stat.repatriated", "stat.mayday", "stat.rescued" };

static struct { uint64_t list, pwqs, name, name_size, node, stats, in_flight, in_flight_count,
	stats_count, stat[STATS]; } at;
#define ABSENT UINT64_MAX /* index of a stat that this kernel does not have */

/* --- the kernel's memory ------------------------------------------------------------------------------------- */

static int kcore;
static struct { uint64_t start, size, offset; } segments[SEGMENTS];
static int segment_count;
/* Cache for one sample: a page holds many of the structures. */
static struct { uint64_t address; uint8_t data[PAGE]; } pages[PAGES];

static void die(const char *what)
{
	fprintf(stderr, "wqmon: %s\n", what);
	exit(1);
}

static void open_kcore(const char *path)
{
	Elf64_Ehdr head;
	Elf64_Phdr segment;

	kcore = open(path, O_RDONLY | O_CLOEXEC);
	if (kcore < 0 || pread(kcore, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(segment))
		die("no readable /proc/kcore (CONFIG_PROC_KCORE; a kernel in lockdown hides it)");
	for (int i = 0; i < head.e_phnum && segment_count < SEGMENTS; i++) {
		if (pread(kcore, &segment, sizeof(segment), head.e_phoff + i * sizeof(segment)) != sizeof(segment))
			break;
		if (segment.p_type != PT_LOAD || segment.p_vaddr + segment.p_memsz < segment.p_vaddr)
			continue;
		segments[segment_count].start = segment.p_vaddr;
		segments[segment_count].size = segment.p_memsz;
		segments[segment_count++].offset = segment.p_offset;
	}
}

static int read_page(uint64_t address, uint8_t *to)
{
	for (int i = 0; i < segment_count; i++) {
		uint64_t into = address - segments[i].start;

		if (address >= segments[i].start && into < segments[i].size)
			return pread(kcore, to, PAGE, segments[i].offset + into) == PAGE;
	}
	return 0;
}

static int read_memory(uint64_t address, void *to, uint64_t size)
{
	for (uint64_t done = 0, part; done < size; done += part) {
		uint64_t place = address + done, page = place & ~(uint64_t)(PAGE - 1);
		int slot = page / PAGE % PAGES;

		part = page + PAGE - place;
		if (part > size - done)
			part = size - done;
		if (pages[slot].address != page) {
			pages[slot].address = 0;
			if (!page || !read_page(page, pages[slot].data))
				return 0;
			pages[slot].address = page;
		}
		memcpy((uint8_t *)to + done, pages[slot].data + place % PAGE, part);
	}
	return 1;
}

static uint64_t read_u64(uint64_t address) /* 0: unreadable; a pointer in a list is never 0 */
{
	uint64_t value = 0;

	return address % 8 == 0 && read_memory(address, &value, sizeof(value)) ? value : 0;
}

/* --- counters ------------------------------------------------------------------------------------------------ */

struct pwq { uint64_t address, last[STATS]; int sample; };
struct wq {
	uint64_t total[STATS], in_flight, pending, last_in_flight, last_pending;
	char name[NAME];
	int changed;
};
static struct pwq pwqs[MAX_PWQS];
static struct wq wqs[MAX_WQS];
static int wq_count, sample, counting;

static struct pwq *pwq_at(uint64_t address)
{
	uint64_t slot = (address >> 8) * 0x9E3779B97F4A7C15u >> 48;

	for (int tries = 0; tries < MAX_PWQS; tries++, slot++) {
		struct pwq *pwq = &pwqs[slot % MAX_PWQS];

		if (!pwq->address || pwq->address == address) {
			pwq->address = address;
			return pwq;
		}
	}
	return NULL;
}

/* Workqueues with the same name are counted together. */
static struct wq *wq_named(const char *name)
{
	for (int i = 0; i < wq_count; i++)
		if (!strcmp(wqs[i].name, name))
			return &wqs[i];
	if (wq_count == MAX_WQS)
		return NULL;
	strcpy(wqs[wq_count].name, name);
	return &wqs[wq_count++];
}

static int read_name(uint64_t wq, char *name)
{
	uint64_t size = at.name_size < NAME ? at.name_size : NAME;

	if (!read_memory(wq + at.name, name, size))
		return 0;
	name[size - 1] = 0;
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~')
			return 0;
	return name[0] != 0;
}

/*
 * Add what a pool_workqueue has counted since the last sample. It can disappear, with its counters, when the attributes
 * of its workqueue change.
 */
static int count_pwq(struct wq *wq, uint64_t address)
{
	uint64_t now[ARRAY_MAX];
	int32_t colours[ARRAY_MAX];
	struct pwq *pwq = pwq_at(address);
	uint64_t flying = 0;

	if (!pwq || !read_memory(address + at.stats, now, sizeof(now[0]) * at.stats_count) ||
	    !read_memory(address + at.in_flight, colours, sizeof(colours[0]) * at.in_flight_count))
		return 0;
	for (int i = 0; i < STATS; i++) {
		uint64_t value = at.stat[i] == ABSENT ? 0 : now[at.stat[i]], since = value;

		if (pwq->sample)
			since = value >= pwq->last[i] ? value - pwq->last[i] : value;
		else if (!counting)
			since = 0;
		wq->total[i] += since;
		wq->changed |= since != 0;
		pwq->last[i] = value;
	}
	pwq->sample = sample;
	if (pwq->last[STARTED] > pwq->last[COMPLETED])
		flying = pwq->last[STARTED] - pwq->last[COMPLETED];
	wq->in_flight += flying;
	for (uint64_t i = 0; i < at.in_flight_count; i++)
		wq->pending += colours[i] > 0 ? colours[i] : 0;
	return 1;
}

/* Read both levels of lists, with bounds. Return NULL, or the list that does not lead back to its head. */
static const char *read_lists(uint64_t head)
{
	uint64_t node = head;

	for (int i = 0; i < MAX_WQS; i++) {
		uint64_t address, pwq_node;
		char name[NAME];
		struct wq *wq;

		node = read_u64(node);
		if (node == head)
			return NULL;
		address = node - at.list;
		if (!node || !read_name(address, name) || !(wq = wq_named(name)))
			return "the list of workqueues";
		pwq_node = address + at.pwqs;
		for (int j = 0; (pwq_node = read_u64(pwq_node)) != address + at.pwqs; j++)
			if (j == MAX_PWQS || !pwq_node || !count_pwq(wq, pwq_node - at.node))
				return "a list of pool_workqueues";
	}
	return "the list of workqueues has no end";
}

static const char *read_sample(uint64_t head)
{
	for (int i = 0; i < PAGES; i++)
		pages[i].address = 0;
	for (int i = 0; i < wq_count; i++)
		wqs[i].in_flight = wqs[i].pending = 0;
	sample++;
	return read_lists(head);
}

/* Take the sample from which counting starts. It must be complete, or later counters would include the past. */
static void begin(uint64_t head)
{
	const char *unreadable = "";

	for (int tries = 0; unreadable && tries < 10; tries++)
		unreadable = read_sample(head);
	if (unreadable)
		die("the kernel's lists of workqueues cannot be read");
	counting = 1;
}

static void take_sample(uint64_t head, FILE *series, double seconds)
{
	const char *unreadable = read_sample(head);

	for (int i = 0; i < wq_count; i++) {
		struct wq *wq = &wqs[i];

		if (!wq->changed && wq->in_flight == wq->last_in_flight && wq->pending == wq->last_pending)
			continue;
		wq->changed = 0;
		wq->last_in_flight = wq->in_flight;
		wq->last_pending = wq->pending;
		fprintf(series, "%.3f\t%s", seconds, wq->name);
		for (int j = 0; j < STATS; j++)
			if (at.stat[j] == ABSENT)
				fputs("\t-", series);
			else
				fprintf(series, "\t%llu", (unsigned long long)wq->total[j]);
		fprintf(series, "\t%llu\t%llu\n", (unsigned long long)wq->in_flight,
			(unsigned long long)(wq->pending > wq->in_flight ? wq->pending - wq->in_flight : 0));
	}
	if (unreadable)
		fprintf(series, "note\t%.3f\tthis sample is incomplete: %s could not be read\n", seconds, unreadable);
	if (fflush(series))
		die("the series cannot be written");
}

/* --- inputs -------------------------------------------------------------------------------------------------- */

static void read_layout(const char *path)
{
	const struct { const char *key; uint64_t *to, below; } required[] = {
		{ "workqueue_struct.list", &at.list, PAGE }, { "workqueue_struct.pwqs", &at.pwqs, PAGE },
		{ "workqueue_struct.name", &at.name, PAGE }, { "workqueue_struct.name.size", &at.name_size, PAGE },
		{ "pool_workqueue.pwqs_node", &at.node, PAGE }, { "pool_workqueue.stats", &at.stats, PAGE },
		{ "pool_workqueue.stats.count", &at.stats_count, ARRAY_MAX },
		{ "pool_workqueue.nr_in_flight", &at.in_flight, PAGE },
		{ "pool_workqueue.nr_in_flight.count", &at.in_flight_count, ARRAY_MAX },
	};
	const size_t count = sizeof(required) / sizeof(required[0]);
	char key[80];
	unsigned long long value;
	size_t found = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		die("no offsets of this kernel's structures");
	for (int i = 0; i < STATS; i++)
		at.stat[i] = ABSENT;
	while (fscanf(file, "%79s %llu", key, &value) == 2) {
		for (size_t i = 0; i < count; i++)
			if (!strcmp(key, required[i].key) && value < required[i].below) {
				*required[i].to = value;
				found++;
			}
		for (int i = 0; i < STATS; i++)
			if (!strcmp(key, stat_keys[i]) && value < ARRAY_MAX)
				at.stat[i] = value;
	}
	fclose(file);
	for (int i = 0; i < STATS; i++)
		if (at.stat[i] >= at.stats_count)
			at.stat[i] = ABSENT;
	if (found != count || !at.name_size || at.stat[STARTED] == ABSENT || at.stat[COMPLETED] == ABSENT)
		die("the offsets of this kernel's structures are incomplete");
}

static uint64_t address_of_list(const char *path)
{
	char line[512], name[256], kind;
	unsigned long long address, found = 0;
	FILE *file = fopen(path, "re");

	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %c %255s", &address, &kind, name) == 3 && !strcmp(name, "workqueues"))
			found = address;
	if (file)
		fclose(file);
	if (!found)
		die("no address of `workqueues` in /proc/kallsyms (CONFIG_KALLSYMS_ALL; kptr_restrict hides it)");
	return found;
}

static double monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static int stopped_before(const sigset_t *stop, double when)
{
	double left = when - monotonic();
	struct timespec wait = { 0, 0 };

	if (left > 0) {
		wait.tv_sec = left;
		wait.tv_nsec = (left - wait.tv_sec) * 1e9;
	}
	return sigtimedwait(stop, NULL, &wait) == SIGTERM;
}

int main(int count, char **words)
{
	int cpu = sched_getcpu(), end = 0;
	double started;
	uint64_t head;
	FILE *series;
	sigset_t stop;
	cpu_set_t here;

	if (count < 3)
		die("usage: wqmon LAYOUT SERIES [KCORE KALLSYMS]");
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* Stay on one CPU, because some plans count migrations of tasks. */
	CPU_ZERO(&here);
	CPU_SET(cpu < 0 ? 0 : cpu, &here);
	sched_setaffinity(0, sizeof(here), &here);
	read_layout(words[1]);
	open_kcore(count > 4 ? words[3] : "/proc/kcore");
	head = address_of_list(count > 4 ? words[4] : "/proc/kallsyms");
	if (!read_u64(head))
		die("/proc/kcore does not have the list of workqueues");
	series = fopen(words[2], "we");
	if (!series)
		die("the series cannot be written");
	fputs("source\tstats\ncolumns", series);
	for (int i = 0; i < STATS; i++)
		fprintf(series, "\t%s", strchr(stat_keys[i], '.') + 1);
	fputs("\tin_flight\tqueued\n", series);
	started = monotonic();
	begin(head);
	puts("watching");
	fflush(stdout);
	for (int i = 1; !end && i <= MAX_SAMPLES; i++) {
		end = stopped_before(&stop, started + i);
		take_sample(head, series, monotonic() - started);
	}
	return 0;
}
