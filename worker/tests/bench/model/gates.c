/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of which virtual time is known in advance: spinning, waiting, handing a cache line over, reading memory.
 * The first process of a boot; test_gates.py gives the calls on the command line (gates=NAME:ARGUMENT:...,...), and reads
 * one line `NAME:ARGUMENT:... FIGURE` for each from the console.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wqmark.h"

enum { THREADS = 128, WINDOW_US = 1000, BLOCK = 1000, LINE = 128 };

struct line {
	_Atomic long value;
	char pad[LINE - sizeof(long)];
};

struct waiter { /* of the queued lock */
	_Atomic(struct waiter *) next;
	_Atomic int is_blocked;
	char pad[LINE - 16];
};

static struct line lines[THREADS] __attribute__((aligned(LINE)));
static struct line serving __attribute__((aligned(LINE)));
static struct waiter waiters[THREADS] __attribute__((aligned(LINE)));
static _Atomic(struct waiter *) tail __attribute__((aligned(LINE)));
static long guarded[LINE] __attribute__((aligned(LINE)));
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static _Atomic int arrived;
static int threads_count, cpus;
static double begun, ended[THREADS];
static long done[THREADS];
static int first_cpu, step_cpu;
static long amount;
static void (*operation)(long thread);

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static void relax(void)
{
#ifdef __x86_64__
	__asm__ volatile("pause");
#else
	__asm__ volatile("yield");
#endif
}

/* BLOCK no-operations, so that a loop costs next to nothing. */
static void spin(long blocks)
{
	while (blocks--)
		__asm__ volatile(".rept 1000\n\tnop\n\t.endr");
}

static void add_shared(long thread)
{
	(void)thread;
	atomic_fetch_add(&lines[0].value, 1);
}

static void add_own(long thread)
{
	atomic_fetch_add(&lines[thread].value, 1);
}

static void ticket_lock(long thread)
{
	long ticket = atomic_fetch_add(&lines[0].value, 1);

	(void)thread;
	while (atomic_load_explicit(&serving.value, memory_order_acquire) != ticket)
		relax();
	guarded[0]++;
	atomic_store_explicit(&serving.value, ticket + 1, memory_order_release);
}

static void queued_lock(long thread)
{
	struct waiter *self = &waiters[thread], *before, *next;

	atomic_store_explicit(&self->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&self->is_blocked, 1, memory_order_relaxed);
	before = atomic_exchange(&tail, self);
	if (before) {
		atomic_store_explicit(&before->next, self, memory_order_release);
		while (atomic_load_explicit(&self->is_blocked, memory_order_acquire))
			relax();
	}
	guarded[0]++;
	next = atomic_load_explicit(&self->next, memory_order_acquire);
	if (!next) {
		struct waiter *expected = self;

		if (atomic_compare_exchange_strong(&tail, &expected, NULL))
			return;
		while (!(next = atomic_load_explicit(&self->next, memory_order_acquire)))
			relax();
	}
	atomic_store_explicit(&next->is_blocked, 0, memory_order_release);
}

static void futex_lock(long thread)
{
	(void)thread;
	pthread_mutex_lock(&mutex);
	guarded[0]++;
	pthread_mutex_unlock(&mutex);
}

static void bind_to(long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % cpus, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("sched_setaffinity");
}

static void *work(void *number)
{
	long thread = (long)number, count = 0;

	bind_to(first_cpu + thread * step_cpu);
	pthread_barrier_wait(&barrier);
	/* The kernel may let a thread wait for its CPU, which is not what is measured. */
	atomic_fetch_add(&arrived, 1);
	while (threads_count <= cpus && atomic_load(&arrived) < threads_count)
		relax();
	if (!thread)
		begun = now();
	if (operation) {
		double until = now() + WINDOW_US * 1e-6;

		do {
			for (int i = 0; i < 16; i++)
				operation(thread);
			count += 16;
		} while (now() < until);
	} else {
		spin(amount);
	}
	ended[thread] = now();
	done[thread] = count;
	return NULL;
}

/* Run threads and return the time until the last has ended, in seconds; the sum of their operations in `sum`. */
static double run(int threads, long *sum)
{
	pthread_t ids[THREADS];
	double last = 0;

	*sum = 0;
	arrived = 0;
	threads_count = threads;
	tail = NULL;
	lines[0].value = serving.value = 0;
	pthread_barrier_init(&barrier, NULL, threads);
	for (long i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, work, (void *)i);
	for (int i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		last = ended[i] > last ? ended[i] : last;
		*sum += done[i];
	}
	return last - begun;
}

/* Nanoseconds of one of `count` dependent loads, each of another line of `kib` KiB in pseudo-random order. */
static double chase(long kib, long count)
{
	long lines_count = kib * 1024 / 64, place = 0, stride = 5 * 4096 / 64 + 1;
	char *memory = malloc(kib * 1024);
	double start;

	memset(memory, 0, kib * 1024);
	/* A walk over pages and lines that no prefetcher follows and that meets each line once: the stride is odd. */
	for (long i = 0; i < lines_count; i++) {
		long next = (place + stride) % lines_count;

		*(long *)(memory + place * 64) = next * 64;
		place = next;
	}
	place = 0;
	start = now();
	for (long i = 0; i < count; i++)
		place = *(volatile long *)(memory + place);
	start = now() - start;
	free(memory);
	return start * 1e9 / count;
}

static double sleep_us(long us)
{
	double start = now();

	usleep(us);
	return (now() - start) * 1e6;
}

/* CPU seconds of this process while it sleeps. */
static double idle_us(long us)
{
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	usleep(us);
	getrusage(RUSAGE_SELF, &after);
	return after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
}

/* NAME:A:B:C. Threads: A of them, thread i on CPU B + i * C. */
static double call(char *text)
{
	static const struct {
		const char *name;
		void (*operation)(long thread);
	} operations[] = { { "shared", add_shared }, { "own", add_own }, { "ticket", ticket_lock },
			   { "queued", queued_lock }, { "futex", futex_lock } };
	char *name = strtok(text, ":"), *word;
	long arguments[4] = { 0 }, sum;
	double time;

	for (int i = 0; i < 4 && (word = strtok(NULL, ":")); i++)
		arguments[i] = atol(word);
	if (!strcmp(name, "sleep"))
		return sleep_us(arguments[0]);
	if (!strcmp(name, "idle"))
		return idle_us(arguments[0]);
	if (!strcmp(name, "chase"))
		return chase(arguments[0], arguments[1]);
	first_cpu = arguments[1];
	step_cpu = arguments[2];
	operation = NULL;
	for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		if (!strcmp(name, operations[i].name))
			operation = operations[i].operation;
	amount = arguments[3]; /* blocks to spin */
	time = run(arguments[0], &sum);
	/* Microseconds to spin, or nanoseconds for each operation. */
	return operation ? time * 1e9 / sum : time * 1e6;
}

int main(void)
{
	static char command_line[4096], copy[256];
	FILE *file;
	char *calls, *rest, *times;

	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	mount("none", "/proc", "proc", 0, NULL);
	file = fopen("/proc/cmdline", "r");
	calls = file && fgets(command_line, sizeof(command_line), file) ? strstr(command_line, "gates=") : NULL;
	WQMARK(WQMARK_TRACK);
	times = calls ? strstr(command_line, "times=") : NULL;
	for (long left = times ? atol(times + strlen("times=")) : 1; calls && left; left--) {
		static char again[4096];

		snprintf(again, sizeof(again), "%s", calls + strlen("gates="));
		for (char *one = strtok_r(strtok(again, " \n"), ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
			snprintf(copy, sizeof(copy), "%s", one);
			printf("\ngate %s %.4f\n", one, call(copy));
			fflush(stdout);
		}
	}
	WQMARK(WQMARK_UNTRACK);
	reboot(RB_POWER_OFF);
	return 0;
}
