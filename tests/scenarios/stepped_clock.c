/*
 * Preloaded into every program of a lab: shift the wall clock by the number of seconds in the file OFFSET_FILE.
 * The monotonic clock stays, as when an administrator or NTP steps the real clock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *offset;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void map_offset(void)
{
	int file = open(OFFSET_FILE, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return;
	void *page = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
	close(file);
	if (page != MAP_FAILED)
		offset = page;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!real_clock_gettime)
		real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	int result = real_clock_gettime(clock, now);

	if (!result && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += *offset;
	return result;
}

int gettimeofday(struct timeval *now, void *zone)
{
	struct timespec precise;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &precise);
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *result)
{
	struct timespec precise;

	clock_gettime(CLOCK_REALTIME, &precise);
	if (result)
		*result = precise.tv_sec;
	return precise.tv_sec;
}
