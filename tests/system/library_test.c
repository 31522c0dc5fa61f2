/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out, through the library, what the test says line by line on the standard input, and prints what came of
 * it. A line is a verb and its words; handles are numbered from 0. Built and driven by library.py.
 */
#include <errno.h>
#include <inttypes.h>
#include <lockbroker.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANDLES = 4, WORDS = 80, NAMES = 64 };

static const char *const results[] = {
	"OK",     "TAKEN",    "LOST",        "NOTHELD",  "DEADLOCK", "BADNAME", "LIMIT",
	"DENIED", "MISMATCH", "UNAVAILABLE", "DRAINING", "REFUSED",  "NONE",    "CONNECTION",
};

static struct lb *handles[HANDLES];
static int64_t number; /* what a call gave, 0 when it gives none */

/* The handle by its place: lb_open() fills it while the arguments are evaluated. */
static void tell(struct lb *const *lb, enum lb_result r)
{
	if (r == LB_OK)
		printf("OK %" PRId64 "\n", number);
	else
		printf("%s %s\n", results[r], lb_error(*lb));
}

static enum lb_result acquire_leased(struct lb *lb, char *const *argv)
{
	struct lb_options options = LB_OPTIONS;

	options.timeout_ms = atoll(argv[3]);
	options.lease_ms = atoll(argv[4]);
	return lb_acquire_with(lb, argv[0], atoll(argv[1]), atoll(argv[2]), &options, &number);
}

static void print_reply(const struct lb_reply *reply)
{
	const char *text;
	size_t i, len;

	switch (lb_reply_type(reply)) {
	case LB_REPLY_NIL:
		printf("nil");
		break;
	case LB_REPLY_INTEGER:
		printf("%" PRId64, lb_reply_integer(reply));
		break;
	case LB_REPLY_TEXT:
		text = lb_reply_text(reply, &len);
		printf("'%.*s'", (int)len, text);
		break;
	case LB_REPLY_ARRAY:
		printf("[");
		for (i = 0; i < lb_reply_count(reply); i++) {
			print_reply(lb_reply_item(reply, i));
			printf(" ");
		}
		printf("]");
		break;
	case LB_REPLY_MAP:
		printf("{");
		for (i = 0; i < lb_reply_count(reply); i++) {
			print_reply(lb_reply_key(reply, i));
			printf(":");
			print_reply(lb_reply_item(reply, i));
			printf(" ");
		}
		printf("}");
		break;
	}
}

static void command(struct lb *lb, int argc, char **argv)
{
	const struct lb_reply *reply;
	enum lb_result r = lb_command(lb, argc, (const char *const *)argv, &reply);

	if (r == LB_OK) {
		print_reply(reply);
		printf("\n");
	} else {
		tell(&lb, r);
	}
}

static void leader(struct lb *lb, const char *name)
{
	const struct lb_reply *reply;
	enum lb_result r = lb_leader(lb, name, &reply);

	if (r == LB_OK) {
		print_reply(lb_reply_field(reply, "data"));
		printf("\n");
	} else {
		tell(&lb, r);
	}
}

static void event(struct lb *lb, int64_t timeout_ms)
{
	static const char *const types[] = { "LOST",	"JEOPARDY", "SAFE",   "REVOKE",
					     "GRANTED", "TIMEOUT",  "FAILED", "LEADER", "UNOBSERVED", "OTHER" };
	struct lb_event e;
	enum lb_result r = lb_event(lb, timeout_ms, &e);

	if (r == LB_OK)
		printf("%s %s %" PRId64 " %" PRId64 " %s%s%s\n", types[e.type], e.name, e.token, e.ms, e.reason,
		       *e.data ? " " : "", e.data);
	else
		tell(&lb, r);
}

/* The words after the name: "wait", "lease", "shared" and "data", each with its value. */
static struct lb_options options_of(int argc, char **argv)
{
	struct lb_options o = LB_OPTIONS;
	int i;

	for (i = 0; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "wait") == 0)
			o.timeout_ms = atoll(argv[i + 1]);
		else if (strcmp(argv[i], "lease") == 0)
			o.lease_ms = atoll(argv[i + 1]);
		else if (strcmp(argv[i], "size") == 0)
			o.size = (size_t)atoll(argv[i + 1]);
		else if (strcmp(argv[i], "shared") == 0)
			o.shared = atoi(argv[i + 1]);
		else
			o.data = argv[i + 1];
	}
	return o;
}

/* The options of a newer program, that sets one which this library does not have, or does not. */
static enum lb_result lock_grown(struct lb *lb, const char *name, int set)
{
	struct {
		struct lb_options known;
		int64_t more[2];
	} options = { .known = LB_OPTIONS };

	options.known.size = sizeof(options);
	options.more[1] = set;
	return lb_lock_with(lb, name, &options.known, &number);
}

/* A count, that many names, and options. */
static void lock_all(struct lb *lb, int argc, char **argv)
{
	int64_t tokens[NAMES];
	size_t n = (size_t)atoi(argv[0]), i;
	struct lb_options options = options_of(argc - 1 - (int)n, argv + 1 + n);
	enum lb_result r = lb_lock_all(lb, n, (const char *const *)argv + 1, &options, tokens);

	if (r != LB_OK) {
		tell(&lb, r);
		return;
	}
	printf("OK");
	for (i = 0; i < n; i++)
		printf(" %" PRId64, tokens[i]);
	printf("\n");
}

/* A count, that many names, and options. Tells the index and the token. */
static void lock_any(struct lb *lb, int argc, char **argv)
{
	size_t n = (size_t)atoi(argv[0]), index = NAMES;
	struct lb_options options = options_of(argc - 1 - (int)n, argv + 1 + n);
	enum lb_result r = lb_lock_any(lb, n, (const char *const *)argv + 1, &options, &index, &number);

	if (r == LB_OK)
		printf("OK %zu %" PRId64 "\n", index, number);
	else
		tell(&lb, r);
}

static void nothing(int which)
{
}

/* From now on a signal comes every few milliseconds and interrupts whatever waits. */
static void interrupt(void)
{
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval often = { { 0, 5000 }, { 0, 5000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

/* A child that does with its copy of the handle what it may: it closes it. */
static void fork_and_close(struct lb *lb)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		lb_close(lb);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	puts(status == 0 ? "OK" : "the child failed");
}

/* What does not ask the daemon anything. */
static void of_handle(struct lb *lb, char **argv)
{
	if (strcmp(argv[0], "deferred") == 0)
		lb_set_deferred(lb, atoi(argv[2])), puts("OK");
	else if (strcmp(argv[0], "fd") == 0)
		printf("%d\n", lb_fd(lb));
	else if (strcmp(argv[0], "error") == 0)
		puts(lb_error(lb));
	else if (strcmp(argv[0], "fork") == 0)
		fork_and_close(lb);
	else if (strcmp(argv[0], "interrupt") == 0)
		interrupt(), puts("OK");
}

static void carry_out(int argc, char **argv)
{
	struct lb **lb = &handles[argc > 1 ? atoi(argv[1]) : 0];
	struct lb_options options = options_of(argc - 3, argv + 3);

	number = 0;
	if (strcmp(argv[0], "open") == 0)
		tell(lb, lb_open(argc > 2 ? argv[2] : NULL, lb));
	else if (strcmp(argv[0], "close") == 0)
		lb_close(*lb), puts("OK"), *lb = NULL;
	else if (strcmp(argv[0], "lock") == 0)
		tell(lb, lb_lock(*lb, argv[2], &number));
	else if (strcmp(argv[0], "timeout") == 0)
		tell(lb, lb_lock_timeout(*lb, argv[2], atoll(argv[3]), &number));
	else if (strcmp(argv[0], "try") == 0)
		tell(lb, lb_try(*lb, argv[2], NULL));
	else if (strcmp(argv[0], "lock_with") == 0)
		tell(lb, lb_lock_with(*lb, argv[2], &options, &number));
	else if (strcmp(argv[0], "grown") == 0)
		tell(lb, lock_grown(*lb, argv[2], atoi(argv[3])));
	else if (strcmp(argv[0], "enqueue") == 0)
		tell(lb, lb_enqueue(*lb, argv[2], argc > 3 ? &options : NULL));
	else if (strcmp(argv[0], "cancel") == 0)
		tell(lb, lb_cancel(*lb, argv[2]));
	else if (strcmp(argv[0], "campaign") == 0)
		tell(lb, lb_campaign(*lb, argv[2], argv[3], atoll(argv[4]), &number));
	else if (strcmp(argv[0], "campaign_enqueue") == 0)
		tell(lb, lb_campaign_enqueue(*lb, argv[2], argv[3], atoll(argv[4])));
	else if (strcmp(argv[0], "resign") == 0)
		tell(lb, lb_resign(*lb, argv[2]));
	else if (strcmp(argv[0], "leader") == 0)
		leader(*lb, argv[2]);
	else if (strcmp(argv[0], "observe") == 0)
		tell(lb, lb_observe(*lb, argv[2]));
	else if (strcmp(argv[0], "unobserve") == 0)
		tell(lb, lb_unobserve(*lb, argv[2]));
	else if (strcmp(argv[0], "renew") == 0)
		tell(lb, lb_renew(*lb, argv[2], atoll(argv[3])));
	else if (strcmp(argv[0], "shared") == 0)
		tell(lb, lb_lock_shared(*lb, argv[2], atoll(argv[3]), &number));
	else if (strcmp(argv[0], "downgrade") == 0)
		tell(lb, lb_downgrade(*lb, argv[2]));
	else if (strcmp(argv[0], "lock_all") == 0)
		lock_all(*lb, argc - 2, argv + 2);
	else if (strcmp(argv[0], "lock_any") == 0)
		lock_any(*lb, argc - 2, argv + 2);
	else if (strcmp(argv[0], "unlock_all") == 0)
		tell(lb, lb_unlock_all(*lb, (size_t)atoi(argv[2]), (const char *const *)argv + 3));
	else if (strcmp(argv[0], "acquire") == 0)
		tell(lb, lb_acquire(*lb, argv[2], atoll(argv[3]), atoll(argv[4]), atoll(argv[5]), &number));
	else if (strcmp(argv[0], "acquire_leased") == 0)
		tell(lb, acquire_leased(*lb, argv + 2));
	else if (strcmp(argv[0], "release") == 0)
		tell(lb, lb_release(*lb, argv[2], atoll(argv[3])));
	else if (strcmp(argv[0], "unlock") == 0)
		tell(lb, lb_unlock(*lb, argv[2]));
	else if (strcmp(argv[0], "valid") == 0)
		tell(lb, lb_valid(*lb, argv[2], &number));
	else if (strcmp(argv[0], "event") == 0)
		event(*lb, atoll(argv[2]));
	else if (strcmp(argv[0], "command") == 0)
		command(*lb, argc - 2, argv + 2);
	else if (strcmp(argv[0], "patience") == 0)
		lb_set_patience(*lb, atoll(argv[2])), puts("OK");
	else
		of_handle(*lb, argv);
}

int main(void)
{
	static char line[128 * 1024];
	char *argv[WORDS + 1];

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (;;) {
		int argc = 0;
		char *word;

		/* An interrupted read is an error to stdio, not an end. */
		errno = 0;
		if (!fgets(line, sizeof(line), stdin)) {
			if (errno != EINTR)
				return 0;
			clearerr(stdin);
			continue;
		}
		for (word = strtok(line, " \n"); word && argc < WORDS; word = strtok(NULL, " \n"))
			argv[argc++] = word;
		argv[argc] = NULL;
		if (argc > 0)
			carry_out(argc, argv);
	}
}
