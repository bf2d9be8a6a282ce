/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose cache line transfers can be counted on paper, as the first process of an instrumented device.
 *
 * Each phase runs threads on given CPUs between two markers, and its name is sent before. Threads take turns where an
 * order matters, by polling lines of their own with `pause`, which ends the CPU's turn under QEMU. What test_counts.py
 * counts are the accesses of the functions marked COUNTED, which are told apart by their addresses.
 *
 * ROUNDS, THREADS_FEW and THREADS_MANY come from the test.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "wqmark.h"

#define COUNTED __attribute__((noinline, noclone))

enum { CPUS = 8, SLOTS = 16, PAGES = 32, PAGE = 4096 };

/* A word on a cache line of its own. */
struct word {
	_Atomic long value;
} __attribute__((aligned(64)));

#define GET(word) atomic_load_explicit(&(word).value, memory_order_relaxed)
#define SET(word, to) atomic_store_explicit(&(word).value, to, memory_order_relaxed)

static int threads; /* of the current phase */

static void yield_turn(void)
{
#ifdef __x86_64__
	__asm__ volatile("pause" ::: "memory");
#else
	__asm__ volatile("yield" ::: "memory");
#endif
}

/*
 * Atomic operations that fetch the line for writing. On arm64 they are those of the kernel for CPUs without LSE,
 * because gcc leaves the prefetch out.
 */
#ifdef __x86_64__
static long add_one(_Atomic long *word) { return atomic_fetch_add(word, 1); }
static void *exchange(void *_Atomic *word, void *new) { return atomic_exchange(word, new); }
#else
static long add_one(_Atomic long *word)
{
	long old, new;
	int failed;

	__asm__ volatile("prfm pstl1strm, %3\n1: ldaxr %0, %3\nadd %1, %0, #1\nstlxr %w2, %1, %3\ncbnz %w2, 1b"
			 : "=&r"(old), "=&r"(new), "=&r"(failed), "+Q"(*word)::"memory");
	return old;
}
static void *exchange(void *_Atomic *word, void *new)
{
	void *old;
	int failed;

	__asm__ volatile("prfm pstl1strm, %2\n1: ldaxr %0, %2\nstlxr %w1, %3, %2\ncbnz %w1, 1b"
			 : "=&r"(old), "=&r"(failed), "+Q"(*word)
			 : "r"(new)
			 : "memory");
	return old;
}
#endif

static void wait_until(struct word *word, long value)
{
	while (GET(*word) != value)
		yield_turn();
}

/* --- sending ------------------------------------------------------------------------------------------------ */

static unsigned char target[1 << 16] __attribute__((aligned(1 << 16)));

static void send_text(const char *name, const char *text)
{
	char bytes[256] = { 0 };
	size_t size = strlen(name) + 1 + strlen(text);

	snprintf(bytes, sizeof(bytes), "%s%c%s", name, 0, text);
	WQMARK(WQMARK_FRAME);
	for (size_t i = 0; i < size; i += 2)
		wqmark_store(target + ((unsigned char)bytes[i] | (unsigned char)bytes[i + 1] << 8));
	if (size % 2)
		WQMARK(WQMARK_FRAME_END_ODD);
	else
		WQMARK(WQMARK_FRAME_END);
}

/* --- ping-pong: two CPUs store alternately to one line ------------------------------------------------------ */

static struct word turn, ball;

COUNTED void store_by_first(long value) { SET(ball, value); }
COUNTED void store_by_second(long value) { SET(ball, value); }

static void prepare_ping_pong(int me)
{
	if (me == 0)
		SET(turn, 0);
	else
		store_by_second(0);
}

static void ping_pong(int me)
{
	for (long round = 0; round < ROUNDS; round++) {
		wait_until(&turn, 2 * round + me);
		if (me == 0)
			store_by_first(round);
		else
			store_by_second(round);
		SET(turn, 2 * round + me + 1);
	}
}

/* --- false sharing: two CPUs store alternately to words of their own, on one line or on two ----------------- */

static long neighbours[8] __attribute__((aligned(64)));
static struct word apart[2];

COUNTED void store_neighbour(int me, long value) { *(volatile long *)&neighbours[me] = value; }
COUNTED void store_apart(int me, long value) { SET(apart[me], value); }

static void prepare_false_sharing(int me)
{
	if (me == 0)
		SET(turn, 0);
	else
		store_neighbour(me, 0);
	store_apart(me, 0);
}

static void false_sharing(int me)
{
	for (long round = 0; round < ROUNDS; round++) {
		wait_until(&turn, 2 * round + me);
		store_neighbour(me, round);
		store_apart(me, round);
		SET(turn, 2 * round + me + 1);
	}
}

/* --- locks -------------------------------------------------------------------------------------------------- */

static struct word order, acquired, polls[CPUS], is_waiting[CPUS];

static void prepare_lock(int me)
{
	SET(polls[me], 0);
	SET(is_waiting[me], 0);
	if (me == 0) {
		SET(order, 0);
		SET(acquired, 0);
	}
}

static void poll_once(int me)
{
	SET(polls[me], GET(polls[me]) + 1);
	SET(is_waiting[me], 1);
	yield_turn();
}

static int count_waiting(void)
{
	int count = 0;

	for (int i = 0; i < threads; i++)
		count += GET(is_waiting[i]);
	return count;
}

/*
 * Hold the lock until every thread that wants it again waits for it, and has looked at it since. So it is known which
 * threads have the lock's line when it is released.
 */
static void hold(int me)
{
	long number = GET(acquired), others = threads - 1, left = (long)threads * ROUNDS - 1 - number, before[CPUS];

	SET(is_waiting[me], 0);
	while (count_waiting() != (left < others ? left : others))
		yield_turn();
	for (int i = 0; i < threads; i++)
		before[i] = GET(polls[i]);
	for (int i = 0; i < threads; i++)
		while (GET(is_waiting[i]) && GET(polls[i]) < before[i] + 2)
			yield_turn();
	SET(acquired, number + 1);
}

/* The first tickets are drawn in the order of the threads. */
static void begin_in_order(int me, long round)
{
	if (round == 0)
		wait_until(&order, me);
}

static void let_next_begin(int me, long round)
{
	if (round == 0)
		SET(order, me + 1);
}

/* Ticket lock: all waiting threads poll one line. */
static struct word next_ticket, now_serving;

COUNTED long draw_ticket(void) { return add_one(&next_ticket.value); }
COUNTED long get_served(void) { return GET(now_serving); }
COUNTED void serve(long ticket) { SET(now_serving, ticket); }

static void prepare_ticket_lock(int me)
{
	prepare_lock(me);
	if (me == 0) {
		SET(next_ticket, 0);
		serve(0);
	}
}

static void ticket_lock(int me)
{
	for (long round = 0; round < ROUNDS; round++) {
		long ticket;

		begin_in_order(me, round);
		ticket = draw_ticket();
		let_next_begin(me, round);
		while (get_served() != ticket)
			poll_once(me);
		hold(me);
		serve(ticket + 1);
	}
}

/* Queued lock (Mellor-Crummey and Scott): each waiting thread polls a line of its own. */
struct node {
	_Atomic(struct node *) next;
	_Atomic long is_locked;
} __attribute__((aligned(64)));

static struct node nodes[CPUS];
static struct {
	void *_Atomic node;
} __attribute__((aligned(64))) tail;

COUNTED void prepare_node(struct node *node)
{
	atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&node->is_locked, 1, memory_order_relaxed);
}
COUNTED struct node *swap_tail(struct node *node) { return exchange(&tail.node, node); }
COUNTED void link_node(struct node *last, struct node *node)
{
	atomic_store_explicit(&last->next, node, memory_order_relaxed);
}
COUNTED long is_node_locked(struct node *node)
{
	return atomic_load_explicit(&node->is_locked, memory_order_relaxed);
}
COUNTED struct node *get_successor(struct node *node)
{
	return atomic_load_explicit(&node->next, memory_order_relaxed);
}
COUNTED void unlock_node(struct node *node) { atomic_store_explicit(&node->is_locked, 0, memory_order_relaxed); }

static void prepare_queued_lock(int me)
{
	prepare_lock(me);
	prepare_node(&nodes[me]);
	if (me == 0)
		exchange(&tail.node, NULL);
}

static void queued_lock(int me)
{
	struct node *node = &nodes[me], *last;

	for (long round = 0; round < ROUNDS; round++) {
		begin_in_order(me, round);
		prepare_node(node);
		last = swap_tail(node);
		if (last) {
			link_node(last, node);
			let_next_begin(me, round);
			while (is_node_locked(node))
				poll_once(me);
		} else {
			let_next_begin(me, round);
		}
		hold(me);
		if (get_successor(node))
			unlock_node(get_successor(node));
		else /* `hold` has waited for all threads, so this is the last one */
			exchange(&tail.node, NULL);
	}
}

/* --- counters ----------------------------------------------------------------------------------------------- */

static struct word counters[CPUS], counter;

COUNTED void count_alone(int me) { SET(counters[me], GET(counters[me]) + 1); }
COUNTED void count_together(void) { add_one(&counter.value); }

static void prepare_count(int me)
{
	count_alone(me);
	if (me == 0) {
		count_together();
		SET(turn, 0);
	}
}

static void count(int me)
{
	for (long round = 0; round < ROUNDS; round++) {
		wait_until(&turn, round * threads + me);
		count_alone(me);
		count_together();
		SET(turn, round * threads + me + 1);
	}
}

/* --- read-mostly: one thread writes, then all others read several times ------------------------------------- */

static struct word setting, epoch, acknowledged[CPUS];

COUNTED void write_setting(long value) { SET(setting, value); }
COUNTED long read_setting(void) { return GET(setting); }

static void prepare_read_mostly(int me)
{
	SET(acknowledged[me], 0);
	if (me == 0) {
		SET(epoch, 0);
		write_setting(0);
	}
}

static void read_mostly(int me)
{
	for (long round = 1; round <= ROUNDS; round++) {
		if (me == 0) {
			write_setting(round);
			SET(epoch, round);
			for (int i = 1; i < threads; i++)
				wait_until(&acknowledged[i], round);
		} else {
			wait_until(&epoch, round);
			for (int i = 0; i < 10; i++)
				read_setting();
			SET(acknowledged[me], round);
		}
	}
}

/* --- producer and consumer: one fills all slots, then the other reads them ---------------------------------- */

static struct word slots[SLOTS];

COUNTED void produce(int slot, long value) { SET(slots[slot], value); }
COUNTED long consume(int slot) { return GET(slots[slot]); }

static void prepare_producer_consumer(int me)
{
	if (me != 0)
		return;
	SET(turn, 0);
	for (int slot = 0; slot < SLOTS; slot++)
		produce(slot, 0);
}

static void producer_consumer(int me)
{
	for (long round = 0; round < ROUNDS; round++) {
		wait_until(&turn, 2 * round + me);
		for (int slot = 0; slot < SLOTS; slot++) {
			if (me == 0)
				produce(slot, round);
			else
				consume(slot);
		}
		SET(turn, 2 * round + me + 1);
	}
}

/* --- instructions: loops whose length is known ------------------------------------------------------------- */

void spend(long count); /* 2 instructions a round, and 1 */
void touch(char *pages, long count); /* 4 instructions a page, and 1; each store faults */
void change(long *word, long count); /* LOCKED_A_ROUND locked instructions a round */

#ifdef __x86_64__
__asm__(".globl spend, touch, change\n"
	".type spend, @function\n"
	"spend: dec %rdi\n jnz spend\n ret\n.size spend, . - spend\n"
	".type touch, @function\n"
	"touch: movb $1, (%rdi)\n add $4096, %rdi\n dec %rsi\n jnz touch\n ret\n.size touch, . - touch\n"
	".type change, @function\n"
	"change: lock incq (%rdi)\n xchg %rax, (%rdi)\n incq (%rdi)\n xchg %rax, %rdx\n lock xadd %eax, (%rdi)\n"
	"dec %rsi\n jnz change\n ret\n.size change, . - change\n");
#else
__asm__(".globl spend, touch, change\n"
	".type spend, %function\n"
	"spend: subs x0, x0, #1\n b.ne spend\n ret\n.size spend, . - spend\n"
	".type touch, %function\n"
	"touch: strb wzr, [x0]\n add x0, x0, #1, lsl #12\n subs x1, x1, #1\n b.ne touch\n ret\n.size touch, . - touch\n"
	".type change, %function\n"
	"change: ldxr x2, [x0]\n add x2, x2, #1\n stxr w3, x2, [x0]\n ldar x2, [x0]\n stlr x2, [x0]\n subs x1, x1, #1\n"
	"b.ne change\n ret\n.size change, . - change\n");
#endif

static char pages[PAGES * PAGE] __attribute__((aligned(PAGE)));
static long changed __attribute__((aligned(64)));

static void prepare_instructions(int me) { changed = me; }

static void instructions(int me)
{
	(void)me;
	spend(ROUNDS * 1000L);
	touch(pages, PAGES);
	change(&changed, ROUNDS);
}

/* --- phases ------------------------------------------------------------------------------------------------- */

struct phase {
	const char *name;
	void (*prepare)(int me), (*run)(int me);
	int threads;
	int cpus[CPUS];
};

#define ALL { 0, 1, 2, 3, 4, 5, 6, 7 }

/* CPUs 0 and 1 share a core, 0 and 2 an L3 cache, 0 and 4 a node. */
static const struct phase phases[] = {
	{ "ping-pong-smt", prepare_ping_pong, ping_pong, 2, { 0, 1 } },
	{ "ping-pong-l3", prepare_ping_pong, ping_pong, 2, { 0, 2 } },
	{ "ping-pong-node", prepare_ping_pong, ping_pong, 2, { 0, 4 } },
	{ "ping-pong-remote", prepare_ping_pong, ping_pong, 2, { 0, 6 } },
	{ "false-sharing", prepare_false_sharing, false_sharing, 2, { 0, 4 } },
	{ "ticket-lock-few", prepare_ticket_lock, ticket_lock, THREADS_FEW, ALL },
	{ "ticket-lock-many", prepare_ticket_lock, ticket_lock, THREADS_MANY, ALL },
	{ "queued-lock-few", prepare_queued_lock, queued_lock, THREADS_FEW, ALL },
	{ "queued-lock-many", prepare_queued_lock, queued_lock, THREADS_MANY, ALL },
	{ "counters", prepare_count, count, CPUS, ALL },
	{ "read-mostly", prepare_read_mostly, read_mostly, CPUS, ALL },
	{ "producer-consumer-smt", prepare_producer_consumer, producer_consumer, 2, { 0, 1 } },
	{ "producer-consumer-l3", prepare_producer_consumer, producer_consumer, 2, { 0, 2 } },
	{ "producer-consumer-node", prepare_producer_consumer, producer_consumer, 2, { 0, 4 } },
	{ "producer-consumer-remote", prepare_producer_consumer, producer_consumer, 2, { 0, 6 } },
	{ "instructions", prepare_instructions, instructions, 1, { 0 } },
};

static const struct phase *phase;
static struct word arrived, stage;

/* Wait for all threads of the phase; the first one then runs `mark`, before the others go on. */
static void meet(int me, long number, void (*mark)(void))
{
	atomic_fetch_add(&arrived.value, 1);
	if (me == 0) {
		wait_until(&arrived, threads);
		SET(arrived, 0);
		mark();
		SET(stage, number);
	}
	wait_until(&stage, number);
}

static void begin(void) { WQMARK(WQMARK_BEGIN); }
static void end(void) { WQMARK(WQMARK_END); }

static void *thread(void *argument)
{
	int me = (int)(intptr_t)argument;

	phase->prepare(me);
	meet(me, 1, begin);
	phase->run(me);
	meet(me, 2, end);
	return NULL;
}

static void run_phase(void)
{
	pthread_t ids[CPUS];

	threads = phase->threads;
	SET(stage, 0);
	send_text("phase", phase->name);
	for (int i = 0; i < threads; i++) {
		pthread_attr_t attributes;
		cpu_set_t cpu;

		CPU_ZERO(&cpu);
		CPU_SET(phase->cpus[i], &cpu);
		pthread_attr_init(&attributes);
		if (pthread_attr_setaffinity_np(&attributes, sizeof(cpu), &cpu) ||
		    pthread_create(&ids[i], &attributes, thread, (void *)(intptr_t)i)) {
			send_text("error", "no thread on this CPU");
			reboot(RB_POWER_OFF);
		}
	}
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
}

int main(void)
{
	puts("sharing: begins");
	fflush(stdout);
	WQMARK(WQMARK_TRACK);
	for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++) {
		phase = &phases[i];
		run_phase();
	}
	WQMARK(WQMARK_UNTRACK);
	send_text("finished", "");
	puts("sharing: ends");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 0;
}
