/*
 * bench SOCKET CLIENTS SECONDS own|one: that many processes take and release a lock, each its own or all the same one,
 * for so long. Prints the pairs per second of all together and, in microseconds, the median and the 99th percentile
 * of the time from asking for the lock to having it.
 */
#include <inttypes.h>
#include <lockbroker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Latencies are counted in classes of 1/16 of a power of two of microseconds. */
enum { CLASSES = 32 * 16, CLIENTS_MAX = 1024 };

struct result {
	uint64_t pairs;
	uint64_t count[CLASSES];
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int class_of(uint64_t us)
{
	int power = 4;

	if (us < 16)
		return (int)us;
	while (us >> (power + 1))
		power++;
	return (power - 3) * 16 + (int)(us >> (power - 4)) - 16;
}

static double value_of(int class)
{
	int power = class / 16 + 3;

	if (class < 16)
		return class;
	return (double)(UINT64_C(1) << (power - 4)) * (class % 16 + 16);
}

static int work(const char *socket, const char *name, int64_t end, struct result *result)
{
	struct lb *lb;

	if (lb_open(socket, &lb) != LB_OK) {
		fprintf(stderr, "bench: %s\n", lb_error(lb));
		return 1;
	}
	for (;;) {
		int64_t asked = now_us();

		if (asked >= end)
			break;
		if (lb_lock(lb, name, NULL) != LB_OK)
			break;
		result->count[class_of((uint64_t)(now_us() - asked))]++;
		if (lb_unlock(lb, name) != LB_OK)
			break;
		result->pairs++;
	}
	if (now_us() < end)
		fprintf(stderr, "bench: %s\n", lb_error(lb));
	lb_close(lb);
	return now_us() < end;
}

static double percentile(const struct result *sum, double part)
{
	uint64_t seen = 0;
	int i;

	for (i = 0; i < CLASSES; i++) {
		seen += sum->count[i];
		if ((double)seen >= part * (double)sum->pairs)
			return value_of(i);
	}
	return 0;
}

static void add_up(const struct result *results, int clients, struct result *sum)
{
	int i, k;

	for (i = 0; i < clients; i++) {
		sum->pairs += results[i].pairs;
		for (k = 0; k < CLASSES; k++)
			sum->count[k] += results[i].count[k];
	}
}

int main(int argc, char **argv)
{
	int clients = argc > 4 ? atoi(argv[2]) : 0, i, status, failed = 0;
	struct result *results, sum = { 0 };
	int64_t began, end;

	if (clients < 1 || clients > CLIENTS_MAX) {
		fprintf(stderr, "Usage: bench SOCKET CLIENTS SECONDS own|one\n");
		return 64;
	}
	results = mmap(NULL, sizeof(*results) * CLIENTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results == MAP_FAILED) {
		perror("bench");
		return 1;
	}
	began = now_us();
	end = began + (int64_t)(atof(argv[3]) * 1e6);
	for (i = 0; i < clients; i++) {
		char name[32];

		snprintf(name, sizeof(name), "bench%d", strcmp(argv[4], "one") == 0 ? 0 : i);
		if (fork() == 0)
			_exit(work(argv[1], name, end, &results[i]));
	}
	while (wait(&status) > 0)
		failed |= status;
	add_up(results, clients, &sum);
	printf("%.0f %.0f %.0f\n", (double)sum.pairs * 1e6 / (double)(now_us() - began), percentile(&sum, 0.5),
	       percentile(&sum, 0.99));
	return failed != 0;
}
