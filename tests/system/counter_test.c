/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter_test NAME FILE NUMBER PAUSE_US: takes the lock in a loop and adds 1 to a number that it shares with others, in
 * no other way than under the lock: read, wait a moment, write. It writes down what it has done, in the line of its NUMBER
 * in the file, until it gets SIGTERM. A loss is counted; whatever else fails is tried again.
 *
 * counter_test NAME FILE NUMBER read: reads the number in a loop, twice under each shared lock, and writes into the file how
 * often the two differed although it had not lost the lock.
 *
 * counter_test NAME FILE NUMBER warm: takes the lock many times, and says when it begins and when that is done.
 */
#include <fcntl.h>
#include <lockbroker.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 4096, MOMENT = 100, PAIRS = 100000, RETRY_US = 10000 };

struct line {
	uint64_t done, lost, failed;
};

struct shared {
	volatile uint64_t sum, torn;
	uint64_t reserved;
	volatile struct line lines[];
};

static volatile sig_atomic_t over;

static void end(int number)
{
	over = 1;
}

static void pause_us(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	if (us)
		nanosleep(&t, NULL); /* a pace */
}

static struct lb *opened(void)
{
	struct lb *lb;

	while (lb_open(NULL, &lb) != LB_OK && !over) {
		lb_close(lb);
		pause_us(RETRY_US);
	}
	return lb;
}

static struct lb *failed(struct lb *lb, enum lb_result r, volatile struct line *line)
{
	if (r == LB_LOST) {
		line->lost++;
		return lb;
	}
	line->failed++;
	pause_us(RETRY_US);
	if (r != LB_CONNECTION)
		return lb;
	lb_close(lb);
	return opened();
}

static void add(struct shared *s)
{
	uint64_t sum = s->sum;

	for (volatile int i = 0; i < MOMENT; i++)
		;
	s->sum = sum + 1;
}

static void count(const char *name, struct shared *s, volatile struct line *line, long us)
{
	struct lb *lb = opened();
	enum lb_result r;

	while (!over) {
		r = lb_lock(lb, name, NULL);
		if (r != LB_OK) {
			lb = failed(lb, r, line);
			continue;
		}
		add(s);
		line->done++;
		r = lb_unlock(lb, name);
		if (r != LB_OK)
			lb = failed(lb, r, line);
		pause_us(us);
	}
	lb_close(lb);
}

static bool is_torn(const struct shared *s)
{
	uint64_t sum = s->sum;

	for (volatile int i = 0; i < MOMENT; i++)
		;
	return s->sum != sum;
}

static void look(const char *name, struct shared *s, volatile struct line *line)
{
	struct lb *lb = opened();
	enum lb_result r;
	bool torn;

	while (!over) {
		r = lb_lock_shared(lb, name, -1, NULL);
		if (r != LB_OK) {
			lb = failed(lb, r, line);
			continue;
		}
		torn = is_torn(s);
		line->done++;
		r = lb_unlock(lb, name);
		if (r != LB_OK)
			lb = failed(lb, r, line);
		else if (torn)
			s->torn++;
	}
	lb_close(lb);
}

static int pairs(struct lb *lb, const char *name, int n)
{
	while (n--)
		if (lb_lock(lb, name, NULL) != LB_OK || lb_unlock(lb, name) != LB_OK) {
			fprintf(stderr, "%s\n", lb_error(lb));
			return 1;
		}
	return 0;
}

static int warm(const char *name)
{
	struct lb *lb = opened();
	int r = write(1, "begins\n", 7) != 7 || pairs(lb, name, PAIRS) || write(1, "done\n", 5) != 5;

	lb_close(lb);
	return r;
}

int main(int argc, char **argv)
{
	struct shared *s;
	int fd = argc == 5 ? open(argv[2], O_RDWR) : -1;

	if (fd < 0)
		return 64;
	if (strcmp(argv[4], "warm") == 0)
		return warm(argv[1]);
	s = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return 1;
	signal(SIGTERM, end);
	if (strcmp(argv[4], "read") == 0)
		look(argv[1], s, &s->lines[atoi(argv[3])]);
	else
		count(argv[1], s, &s->lines[atoi(argv[3])], atol(argv[4]));
	return 0;
}
