/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses a handle in every way that makes it keep memory, closes it, and does so again and again: what the process has may
 * not grow. Run by test_library.py; the argument is the socket of a broker whose operator we are.
 */
#include <dirent.h>
#include <lockbroker.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20 };

static void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void use(const char *path)
{
	const char *force[] = { "FORCEUNLOCK", "lost" }, *ping[] = { "PING" };
	struct lb *lb, *other;

	must(lb_open(path, &lb) == LB_OK && lb_open(path, &other) == LB_OK, "open");
	/* An event that nobody reads. */
	must(lb_lock(lb, "kept", NULL) == LB_OK && lb_enqueue(lb, "kept", NULL) == LB_OK, "enqueue");
	must(lb_command(lb, 1, ping, NULL) == LB_OK, "ping");
	/* An unlock that fails, and whose failure nobody asks for. */
	must(lb_lock(lb, "lost", NULL) == LB_OK, "lock");
	must(lb_command(other, 2, force, NULL) == LB_OK, "force");
	must(lb_unlock(lb, "lost") == LB_OK, "unlock");
	must(lb_command(lb, 1, ping, NULL) == LB_OK, "ping");
	/* One whose answer nobody waits for; it tells of the other one. */
	must(lb_unlock(lb, "kept") == LB_LOST, "unlock");
	lb_close(other);
	lb_close(lb);
	must(lb_open("/nonexistent/socket", &lb) == LB_CONNECTION, "open of nothing");
	lb_close(lb);
}

static int count(const char *directory)
{
	DIR *d = opendir(directory);
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	size_t bytes, after;
	int fds, maps;

	(void)argc;
	use(argv[1]);
	fds = count("/proc/self/fd");
	maps = count("/proc/self/map_files");
	bytes = mallinfo2().uordblks;
	for (int i = 0; i < ROUNDS; i++)
		use(argv[1]);
	after = mallinfo2().uordblks;
	printf("%zu bytes, %d descriptors, %d mappings\n", after > bytes ? (after - bytes) / ROUNDS : 0,
	       count("/proc/self/fd") - fds, (count("/proc/self/map_files") - maps) / ROUNDS);
	return 0;
}
