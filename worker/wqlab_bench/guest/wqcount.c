/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wqcount FILE: count cycles, instructions, cache misses and branch misses of all CPUs, until SIGTERM.
 *
 * Prints "counting" when the counters run; at the end, FILE has lines of name and count. The counters only count: there
 * are no samples, no interrupts, and no multiplexing, which would need a timer on each CPU, because the group is pinned.
 * Exit status 1, with the reason on standard error, if this machine has no such counters.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS 4
#ifndef EVENT_TYPE /* the tests count software events, which need no PMU */
#define EVENT_TYPE PERF_TYPE_HARDWARE
#endif

static const struct {
	const char *name;
	uint64_t config;
} event[EVENTS] = {
	{ "cycles", PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", PERF_COUNT_HW_INSTRUCTIONS },
	{ "cache_misses", PERF_COUNT_HW_CACHE_MISSES },
	{ "branch_misses", PERF_COUNT_HW_BRANCH_MISSES },
};

static int open_counter(int which, int cpu, int leader)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = EVENT_TYPE;
	attr.config = event[which].config;
	attr.disabled = leader < 0;
	attr.pinned = leader < 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, leader, PERF_FLAG_FD_CLOEXEC);
}

/* Each CPU has one file for each event; the usual limit is 1024 files, enough for fewer than 256 CPUs. */
static void raise_file_limit(long cpus)
{
	rlim_t wanted = cpus * EVENTS + 16;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted;
	if (limit.rlim_max < wanted)
		limit.rlim_max = wanted;
	setrlimit(RLIMIT_NOFILE, &limit); /* if refused, a counter that cannot be opened says so */
}

static const char *reason(void)
{
	switch (errno) {
	case ENOENT:
	case EOPNOTSUPP:
	case EINVAL:
		return "no PMU";
	case ENOSYS:
		return "this kernel has no perf events (CONFIG_PERF_EVENTS)";
	default:
		return strerror(errno);
	}
}

int main(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t sum[EVENTS] = { 0 };
	int missing[EVENTS] = { 0 };
	int (*fd)[EVENTS];
	int opened = 0, lost = 0, sig;
	sigset_t stop;
	FILE *out;

	if (argc != 2) {
		fprintf(stderr, "usage: wqcount FILE\n");
		return 2;
	}
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	fd = calloc(cpus > 0 ? cpus : 1, sizeof(*fd));
	if (!fd)
		return 1;
	raise_file_limit(cpus);
	for (long cpu = 0; cpu < cpus; cpu++) {
		fd[cpu][0] = open_counter(0, (int)cpu, -1);
		if (fd[cpu][0] < 0) {
			if (errno == ENODEV) /* this CPU is offline */
				continue;
			fprintf(stderr, "%s\n", reason());
			return 1;
		}
		opened++;
		for (int i = 1; i < EVENTS; i++) {
			fd[cpu][i] = open_counter(i, (int)cpu, fd[cpu][0]);
			if (fd[cpu][i] >= 0)
				continue;
			if (errno == EMFILE || errno == ENFILE) {
				fprintf(stderr, "%s\n", reason());
				return 1;
			}
			missing[i] = 1; /* this PMU lacks the event */
		}
	}
	if (!opened) {
		fprintf(stderr, "no PMU\n");
		return 1;
	}
	for (long cpu = 0; cpu < cpus; cpu++)
		if (fd[cpu][0] > 0)
			ioctl(fd[cpu][0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	printf("counting\n");
	fflush(stdout);
	sigwait(&stop, &sig);
	for (long cpu = 0; cpu < cpus; cpu++)
		if (fd[cpu][0] > 0)
			ioctl(fd[cpu][0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	for (long cpu = 0; cpu < cpus; cpu++) {
		for (int i = 0; i < EVENTS; i++) {
			uint64_t value[3]; /* count, time enabled, time running */

			if (fd[cpu][i] <= 0)
				continue;
			/* A pinned group that found no free counters reads as end of file. */
			if (read(fd[cpu][i], value, sizeof(value)) != sizeof(value) || value[1] != value[2])
				lost = 1;
			else
				sum[i] += value[0];
		}
	}
	out = fopen(argv[1], "w");
	if (!out) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	if (lost)
		fprintf(stderr, "other events occupied the counters of a CPU\n");
	for (int i = 0; i < EVENTS && !lost; i++)
		if (!missing[i])
			fprintf(out, "%s\t%llu\n", event[i].name, (unsigned long long)sum[i]);
	return fclose(out) || lost;
}
