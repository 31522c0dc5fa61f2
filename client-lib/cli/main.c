/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The lockbroker command: its table of commands, and the commands that have no file of their own (commands.h). */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/operators.h"
#include "client-lib/cli/order.h"
#include "client-lib/cli/process_one.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/table.h"
#include "client-lib/handle.h"
#include "protocol/slice.h"

/* ---- commands ---- */

/* A request whose reply is the number of holders concerned. None is no failure, but has an exit status of its own. */
static int concern(struct lb *lb, int argc, const char *const *words, const char *none)
{
	const struct lb_reply *reply;
	enum lb_result r = lb_command(lb, argc, words, &reply);

	if (r != LB_OK)
		return cli_failed(lb, r);
	if (cli_json_asked)
		printf("{\"holders\":%lld}\n", (long long)lb_reply_integer(reply));
	if (lb_reply_integer(reply) > 0)
		return CLI_OK;
	cli_say("%s", none);
	return CLI_NOBODY;
}

static int run_revoke(struct lb *lb, char **arguments)
{
	const char *words[] = { "REVOKE", arguments[0], arguments[1] };

	return concern(lb, arguments[1] ? 3 : 2, words,
		       "No holder was asked: nobody holds it, or its holders do not read what they are sent.");
}

static int run_force_unlock(struct lb *lb, char **arguments)
{
	const char *words[] = { "FORCEUNLOCK", arguments[0] };

	return concern(lb, 2, words, "Nobody held it.");
}

static int run_ping(struct lb *lb, char **arguments)
{
	struct timespec a, b;
	int status;

	clock_gettime(CLOCK_MONOTONIC, &a);
	status = cli_ask(lb, "PING", NULL, NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	if (status == CLI_OK)
		printf(cli_json_asked ? "{\"ms\":%.3f}\n" : "PONG (%.3f ms)\n",
		       (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6);
	return status;
}

static int run_limit(struct lb *lb, char **arguments)
{
	const char *words[] = { "LIMIT", arguments[0], arguments[1] };
	const struct lb_reply *reply;
	enum lb_result r = lb_command(lb, arguments[1] ? 3 : 2, words, &reply);

	if (r != LB_OK)
		return cli_failed(lb, r);
	if (lb_reply_type(reply) == LB_REPLY_NIL) {
		cli_say("There is no such semaphore.");
		return CLI_NOBODY;
	}
	if (cli_json_asked)
		printf("{\"limit\":%lld}\n", (long long)lb_reply_integer(reply));
	else
		cli_line(reply);
	return CLI_OK;
}

/* A sweep of very many directories takes long. */
static const int64_t AUDIT_PATIENCE_MS = 86400000;

enum { KEY_COLUMNS = 13 };

static void print_numbers(const struct lb_reply *map)
{
	size_t i, len;

	for (i = 0; i < lb_reply_count(map); i++) {
		const struct lb_reply *value = lb_reply_item(map, i);
		const char *key = lb_reply_text(lb_reply_key(map, i), &len);

		if (lb_reply_type(value) != LB_REPLY_INTEGER)
			continue;
		cli_text(key, len);
		printf("%*s %lld\n", len < KEY_COLUMNS ? (int)(KEY_COLUMNS - len) : 0, "",
		       (long long)lb_reply_integer(value));
	}
}

static int run_audit(struct lb *lb, char **arguments)
{
	static const char *const findings[] = { "strays", "undeleted", "odd_children", "odd_names", "mismatched", "refused" };
	const struct lb_reply *reply, *examples;
	int status;
	size_t i;

	lb_set_patience(lb, AUDIT_PATIENCE_MS);
	status = cli_ask(lb, "AUDIT", NULL, &reply);
	if (status != CLI_OK)
		return status;
	if (lb_reply_type(reply) != LB_REPLY_MAP) {
		cli_say("Somebody else ended the audit.");
		return CLI_UNAVAILABLE;
	}
	examples = lb_reply_field(reply, "examples");
	if (cli_json_asked) {
		cli_json_line(reply);
	} else {
		print_numbers(reply);
		if (lb_reply_count(examples) > 0)
			putchar('\n');
		cli_table(examples);
	}
	for (i = 0; i < sizeof(findings) / sizeof(findings[0]); i++)
		if (lb_reply_integer(lb_reply_field(reply, findings[i])) > 0)
			return CLI_FINDINGS;
	return CLI_OK;
}

/* Longer than a new process may take to get ready. */
static const int64_t RESTART_PATIENCE_MS = 30000;

static int run_restart(struct lb *lb, char **arguments)
{
	const struct lb_reply *reply;
	struct slice version;
	int status;

	lb_set_patience(lb, RESTART_PATIENCE_MS);
	status = cli_ask(lb, "RESTART", NULL, &reply);
	if (status != CLI_OK)
		return status;
	if (cli_json_asked) {
		cli_json_line(reply);
		return CLI_OK;
	}
	version = reply_field(reply, "version");
	printf("lockbrokerd ");
	cli_text(version.data, version.len);
	printf(" serves now, as process %lld; nobody was served for %.1f ms\n",
	       (long long)lb_reply_integer(lb_reply_field(reply, "process_id")),
	       (double)lb_reply_integer(lb_reply_field(reply, "paused_us")) / 1e3);
	return CLI_OK;
}

static void show_config(const struct lb_reply *reply)
{
	size_t i, len;

	for (i = 0; i < lb_reply_count(reply); i++) {
		const char *text = lb_reply_text(lb_reply_key(reply, i), &len);

		cli_text(text, len);
		printf(" = ");
		text = lb_reply_text(lb_reply_item(reply, i), &len);
		if (len > 0)
			cli_text(text, len);
		putchar('\n');
	}
}

static int run_config(struct lb *lb, char **arguments)
{
	const char *const words[] = { "CONFIG", "GET", arguments[0] ? arguments[0] : "*" };
	char pattern[512];
	const struct lb_reply *reply;
	enum lb_result r = lb_command(lb, 3, words, &reply);

	if (r != LB_OK)
		return cli_failed(lb, r);
	if (cli_json_asked)
		cli_json_line(reply);
	else
		show_config(reply);
	if (lb_reply_count(reply) > 0)
		return CLI_OK;
	cli_say("No key of the configuration is called \"%s\".", cli_shown(words[2], pattern, sizeof(pattern)));
	return CLI_NOBODY;
}

static void show_lines(const struct lb_reply *reply)
{
	for (size_t i = 0; i < lb_reply_count(reply); i++)
		cli_line(lb_reply_item(reply, i));
}

static int run_log(struct lb *lb, char **arguments)
{
	const char *records = arguments[0];
	const struct lb_reply *reply;
	int status;

	if (records && (!*records || records[strspn(records, "0123456789")]))
		return cli_usage("log takes a number of records, not \"%s\".", records);
	status = cli_ask(lb, "LOG", records, &reply);
	if (status == CLI_OK)
		(cli_json_asked ? cli_json_line : show_lines)(reply);
	return status;
}

static void show_why(const struct lb_reply *reply)
{
	cli_line(lb_reply_item(reply, 0));
}

static void show_info(const struct lb_reply *reply)
{
	size_t len;
	const char *text = lb_reply_text(reply, &len);

	cli_lines(text, len);
}

static void json_info(const struct lb_reply *reply)
{
	cli_json_info(reply_text(reply));
}

static void json_lines(const struct lb_reply *reply)
{
	cli_json_lines(reply_text(reply));
}

/*
 * A command without `run` sends one request with its argument and shows the reply; without `json`, as JSON as it is.
 */
static const struct command {
	const char *word;
	int args_min, args_max;
	int (*run)(struct lb *lb, char **arguments);
	const char *request;
	void (*show)(const struct lb_reply *reply);
	void (*json)(const struct lb_reply *reply);
} commands[] = {
	{ "leader", 1, 1, cli_leader, NULL, NULL, NULL },
	{ "observe", 1, 1, cli_observe, NULL, NULL, NULL },
	{ "who", 1, 1, cli_who, NULL, NULL, NULL },
	{ "why", 1, 1, NULL, "WHY", show_why, NULL },
	{ "hosts", 0, 0, NULL, "HOSTS", cli_table, NULL },
	{ "limit", 1, 2, run_limit, NULL, NULL, NULL },
	{ "revoke", 1, 2, run_revoke, NULL, NULL, NULL },
	{ "force-unlock", 1, 1, run_force_unlock, NULL, NULL, NULL },
	{ "ping", 0, 0, run_ping, NULL, NULL, NULL },
	{ "info", 0, 1, NULL, "INFO", show_info, json_info },
	{ "audit", 0, 0, run_audit, NULL, NULL, NULL },
	{ "access", 2, 3, cli_access, NULL, NULL, NULL },
	{ "accounts", 0, 0, NULL, "ACCOUNTS", cli_table, NULL },
	{ "reload", 0, 0, NULL, "RELOAD", show_info, json_lines },
	{ "config", 0, 1, run_config, NULL, NULL, NULL },
	{ "log", 0, 1, run_log, NULL, NULL, NULL },
	{ "drain", 0, 1, cli_drain, NULL, NULL, NULL },
	{ "restart", 0, 0, run_restart, NULL, NULL, NULL },
};

static int run(struct lb *lb, const struct command *command, char **arguments)
{
	const struct lb_reply *reply;
	int status;

	if (command->run)
		return command->run(lb, arguments);
	status = cli_ask(lb, command->request, arguments[0], &reply);
	if (status == CLI_OK && !cli_json_asked)
		command->show(reply);
	else if (status == CLI_OK)
		(command->json ? command->json : cli_json_line)(reply);
	return status;
}

static int with_broker(const char *socket, const struct command *command, char **arguments)
{
	struct lb *lb;
	enum lb_result r = handle_open_now(socket, &lb);
	int status = r == LB_OK ? run(lb, command, arguments) : cli_failed(lb, r);

	lb_close(lb);
	return cli_written(status);
}

/* NULL: the table has no such command. */
static const struct command *find_command(const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(word, commands[i].word) == 0)
			return &commands[i];
	return NULL;
}

/* Options stand anywhere before "--"; those that are the words of drain are its argument. */
static bool is_option(const char *word, const struct command *command)
{
	return word[0] == '-' && word[1] && !(command->run == cli_drain && word[1] == '-' && word[2]);
}

enum { WORDS_MAX = 3 };

/* -1: go on. Else the exit status: what was asked for is done, or the words are wrong. */
static int read_words(const struct command *command, int argc, char **argv, char *words[WORDS_MAX + 1], int *ret_count)
{
	bool options = true;

	for (int i = 1; i < argc; i++) {
		if (options && strcmp(argv[i], "--") == 0) {
			options = false;
		} else if (options && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
			return cli_help(argv[0]);
		} else if (options && strcmp(argv[i], "--json") == 0) {
			cli_json_asked = true;
		} else if (options && is_option(argv[i], command)) {
			return cli_usage("%s has no option %s.", argv[0], argv[i]);
		} else if (*ret_count >= command->args_max) {
			return cli_usage("%s does not take the argument \"%s\".", argv[0], argv[i]);
		} else {
			words[(*ret_count)++] = argv[i];
		}
	}
	return *ret_count < command->args_min ? cli_usage("%s needs a NAME.", argv[0]) : -1;
}

static int dispatch_command(const char *socket, const struct command *command, int argc, char **argv)
{
	/* The word of the command is before them, for who looks at all. */
	char *words[WORDS_MAX + 2] = { argv[0] };
	char path[OPERATORS_PATH_MAX];
	int count = 0, status = read_words(command, argc, argv, words + 1, &count);

	if (status >= 0)
		return status;
	return with_broker(operators_only(count + 1, words) ? operators_socket(socket, path) : socket, command, words + 1);
}

/* Commands that read their words, and open the connection, themselves. */
static const struct whole {
	const char *word;
	int (*run)(const char *socket, int argc, char **argv);
	bool json;
} wholes[] = {
	{ "lock", cli_lock, false },	{ "hold", cli_lock, true },	  { "sem", cli_lock, false },
	{ "campaign", cli_lock, false }, { "call", cli_call, true },	  { "check", cli_check, true },
	{ "metrics", cli_metrics, false }, { "http", cli_http, false },	  { "ls", cli_ls, true },
};

static const struct whole *find_whole(const char *word)
{
	for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++)
		if (strcmp(word, wholes[i].word) == 0)
			return &wholes[i];
	return NULL;
}

static int dispatch_whole(const char *socket, const struct whole *whole, int argc, char **argv)
{
	if (cli_json_asked && !whole->json)
		return cli_usage("%s has no --json.", argv[0]);
	/* What a job writes is its own. */
	if (whole->run == cli_lock)
		return cli_lock(socket, argc, argv);
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return cli_help(argv[0]);
	return cli_written(whole->run(socket, argc, argv));
}

static int help(int argc, char **argv)
{
	if (argc > 2)
		return cli_usage("help does not take the argument \"%s\".", argv[2]);
	if (argc > 1 && !find_command(argv[1]) && !find_whole(argv[1]))
		return cli_usage("There is no command \"%s\".", argv[1]);
	return cli_help(argc > 1 ? argv[1] : NULL);
}

static int dispatch(const char *socket, int argc, char **argv)
{
	const struct command *command;
	const struct whole *whole;

	if (argc < 1)
		return cli_usage("A command is missing: lock, hold, sem, campaign, ls, who, why or another.");
	if (strcmp(argv[0], "help") == 0)
		return help(argc, argv);
	command = find_command(argv[0]);
	whole = find_whole(argv[0]);
	if (command)
		return dispatch_command(socket, command, argc, argv);
	return whole ? dispatch_whole(socket, whole, argc, argv) : cli_usage("There is no command \"%s\".", argv[0]);
}

/*
 * If a standard descriptor is closed, the socket would take its number, and the command would write into the socket. What
 * takes its place fails as the closed one would.
 */
static int open_standard(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 'S' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	const char *socket = NULL;
	int c;

	process_one_ends_by_signals();
	if (open_standard() < 0)
		return CLI_OSERR;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+S:Vh", options, NULL)) != -1) {
		switch (c) {
		case 'S':
			if (!*optarg)
				return cli_usage("-S needs a path, not \"\".");
			socket = optarg;
			break;
		case 'V':
			return cli_version();
		case 'h':
			return cli_help(NULL);
		case 'j':
			cli_json_asked = true;
			break;
		case '?':
			if (optopt == 'S')
				return cli_usage("%s needs a path.", argv[optind - 1]);
			return optopt && strncmp(argv[optind - 1], "--", 2) != 0
				       ? cli_usage("There is no option -%c.", optopt)
				       : cli_usage("There is no option %s.", argv[optind - 1]);
		}
	}
	return dispatch(socket, argc - optind, argv + optind);
}
