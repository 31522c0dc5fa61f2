/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * counter FILE TIMES [LOCK] adds one to the number in FILE, TIMES times, each time while holding LOCK. Without LOCK it
 * holds no lock, and loses updates as soon as two processes run at once. It prints "pid token number" for each addition.
 *
 *     cc counter.c -llockbroker -o counter
 */
#include <inttypes.h>
#include <lockbroker.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Reads, modifies and writes, with a pause in which another process could interfere. */
static int increment(const char *path, long *ret_number)
{
	FILE *file = fopen(path, "r+");
	long number = 0;
	int failed;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &number) != 1)
		number = 0;
	usleep(200);
	rewind(file);
	fprintf(file, "%ld\n", ++number);
	failed = ferror(file);
	if (fclose(file) == EOF || failed)
		return -1;
	*ret_number = number;
	return 0;
}

static int once(struct lb *lb, const char *name, const char *path)
{
	int64_t token = 0;
	long number;

	if (lb && lb_lock(lb, name, &token) != LB_OK) {
		fprintf(stderr, "counter: %s\n", lb_error(lb));
		return -1;
	}
	if (increment(path, &number) < 0) {
		perror(path);
		return -1;
	}
	printf("%d %" PRId64 " %ld\n", (int)getpid(), token, number);
	fflush(stdout);
	if (lb && lb_unlock(lb, name) != LB_OK) {
		fprintf(stderr, "counter: %s\n", lb_error(lb));
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct lb *lb = NULL;
	int i, failed = 0;

	if (argc < 3) {
		fprintf(stderr, "Usage: counter FILE TIMES [LOCK]\n");
		return 64;
	}
	if (argc > 3 && lb_open(NULL, &lb) != LB_OK) {
		fprintf(stderr, "counter: %s\n", lb_error(lb));
		failed = 1;
	}
	for (i = 0; i < atoi(argv[2]) && !failed; i++)
		failed = once(lb, argv[3], argv[1]) < 0;
	lb_close(lb);
	return failed;
}
