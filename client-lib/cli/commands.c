/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The table of commands, and the commands that have no file of their own. */
#include "client-lib/cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "client-lib/cli/json.h"
#include "client-lib/cli/operators.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/sheet.h"
#include "client-lib/cli/shown.h"
#include "client-lib/handle.h"
#include "client-lib/request.h"

/* ---- commands ---- */

/* A request whose reply is the number of holders concerned. None is no failure, but has an exit status of its own. */
static int concern(struct lb *lb, int argc, const char *const *words, const char *none, const char *then)
{
	const struct lb_reply *reply;
	int status = cli_ask_words(lb, argc, words, &reply);

	if (status != CLI_OK)
		return status;
	if (cli_json_asked)
		printf("{\"holders\":%lld}\n", (long long)lb_reply_integer(reply));
	if (lb_reply_integer(reply) > 0)
		return CLI_OK;
	cli_say("%s %s%s", none, words[1], then);
	return CLI_NOBODY;
}

static int run_revoke(struct lb *lb, const struct cli_words *w)
{
	const char *words[] = { "REVOKE", w->arguments[0], w->arguments[1] };

	return concern(lb, w->count + 1, words, "No holder was asked to release",
		       ": nobody holds it, or its holders do not read their messages (see `lockbroker who`).");
}

static int run_force_unlock(struct lb *lb, const struct cli_words *w)
{
	const char *words[] = { "FORCEUNLOCK", w->arguments[0] };

	return concern(lb, 2, words, "Nobody held", ": nothing was taken from anybody (see `lockbroker who`).");
}

static int run_ping(struct lb *lb, const struct cli_words *w)
{
	int64_t begin_ns = request_clock_ns();
	int status = cli_ask(lb, "PING", NULL, NULL);

	if (status == CLI_OK)
		printf(cli_json_asked ? "{\"ms\":%.3f}\n" : "PONG (%.3f ms)\n",
		       (double)(request_clock_ns() - begin_ns) / 1e6);
	return status;
}

static int run_limit(struct lb *lb, const struct cli_words *w)
{
	const char *words[] = { "LIMIT", w->arguments[0], w->arguments[1] };
	const struct lb_reply *reply;
	int status = cli_ask_words(lb, w->count + 1, words, &reply);

	if (status != CLI_OK)
		return status;
	if (lb_reply_type(reply) == LB_REPLY_NIL) {
		if (cli_json_asked)
			puts("null");
		cli_say("There is no semaphore %s: `lockbroker sem -l N %s CMD` makes one.", words[1], words[1]);
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
	for (size_t i = 0; i < lb_reply_count(map); i++) {
		const struct lb_reply *value = lb_reply_item(map, i);
		struct slice key = reply_text(lb_reply_key(map, i));

		if (lb_reply_type(value) != LB_REPLY_INTEGER)
			continue;
		cli_text(key);
		printf("%*s %lld\n", key.len < KEY_COLUMNS ? (int)(KEY_COLUMNS - key.len) : 0, "",
		       (long long)lb_reply_integer(value));
	}
}

static int run_audit(struct lb *lb, const struct cli_words *w)
{
	static const char *const findings[] = { "strays", "undeleted", "odd_children", "odd_names", "mismatched", "refused" };
	static const struct sheet_column columns[] = {
		{ "WHAT", "what", 0, SHEET_ALWAYS, NULL }, { "PATH", "path", 0, SHEET_ALWAYS, NULL }
	};
	const struct lb_reply *reply, *examples;
	int status;

	lb_set_patience(lb, AUDIT_PATIENCE_MS);
	status = cli_ask(lb, "AUDIT", NULL, &reply);
	if (status != CLI_OK)
		return status;
	if (lb_reply_type(reply) != LB_REPLY_MAP) {
		cli_say("Somebody else ended the audit: ask for it again.");
		return CLI_UNAVAILABLE;
	}
	examples = lb_reply_field(reply, "examples");
	if (cli_json_asked) {
		cli_json_line(reply);
	} else {
		print_numbers(reply);
		if (lb_reply_count(examples) > 0)
			putchar('\n');
		sheet_show(columns, 2, examples, 0);
	}
	for (size_t i = 0; i < sizeof(findings) / sizeof(findings[0]); i++)
		if (reply_number(reply, findings[i]) > 0)
			return CLI_FINDINGS;
	return CLI_OK;
}

/* Longer than a new process may take to get ready. */
static const int64_t RESTART_PATIENCE_MS = 30000;

static int run_restart(struct lb *lb, const struct cli_words *w)
{
	const struct lb_reply *reply;
	int status;

	lb_set_patience(lb, RESTART_PATIENCE_MS);
	status = cli_ask(lb, "RESTART", NULL, &reply);
	if (status != CLI_OK)
		return status;
	if (cli_json_asked) {
		cli_json_line(reply);
		return CLI_OK;
	}
	printf("lockbrokerd ");
	cli_text(reply_field(reply, "version"));
	printf(" serves now, as process %lld; nobody was served for %.1f ms\n",
	       reply_number(reply, "process_id"), (double)reply_number(reply, "paused_us") / 1e3);
	return CLI_OK;
}

static void show_config(const struct lb_reply *reply)
{
	for (size_t i = 0; i < lb_reply_count(reply); i++) {
		struct slice value = reply_text(lb_reply_item(reply, i));

		cli_text(reply_text(lb_reply_key(reply, i)));
		printf(" = ");
		if (value.len > 0)
			cli_text(value);
		putchar('\n');
	}
}

/* There is no such key: the nearest one, or the nearest of those without their section. */
static void say_no_key(struct lb *lb, const char *pattern)
{
	const char *const words[] = { "CONFIG", "GET", "*" };
	struct cli_near near = { .word = pattern };
	char key[512], best[512] = "", shown[512], hint[640];
	const struct lb_reply *reply;

	if (lb_command(lb, 3, words, &reply) == LB_OK)
		for (size_t i = 0; i < lb_reply_count(reply); i++) {
			struct slice text = reply_text(lb_reply_key(reply, i));
			size_t before = near.best ? near.distance : SIZE_MAX;

			snprintf(key, sizeof(key), "%.*s", (int)text.len, text.data);
			cli_near_try(&near, key, best);
			cli_near_try(&near, strchr(key, '.') ? strchr(key, '.') + 1 : key, best);
			if (near.best && near.distance < before)
				memcpy(best, key, sizeof(best));
		}
	cli_say("No key of the configuration is called \"%s\": `lockbroker config` shows all.%s",
		cli_shown(pattern, shown, sizeof(shown)), cli_near_hint(&near, "", hint, sizeof(hint)));
}

static int run_config(struct lb *lb, const struct cli_words *w)
{
	const char *const words[] = { "CONFIG", "GET", w->arguments[0] ? w->arguments[0] : "*" };
	const struct lb_reply *reply;
	int status = cli_ask_words(lb, 3, words, &reply);

	if (status != CLI_OK)
		return status;
	if (cli_json_asked)
		cli_json_texts(reply);
	else
		show_config(reply);
	if (lb_reply_count(reply) > 0)
		return CLI_OK;
	say_no_key(lb, words[2]);
	return CLI_NOBODY;
}

static void show_hosts(const struct lb_reply *reply)
{
	static const struct sheet_column columns[] = {
		{ "HOST", "host", 8, SHEET_ALWAYS, NULL },	      { "PID", "pid", 0, SHEET_ALWAYS, NULL },
		{ "VERSION", "version", 7, SHEET_ALWAYS, NULL },    { "STARTED", "started", 0, SHEET_ALWAYS, NULL },
		{ "TICK", "tick_ms", 0, SHEET_WIDE, NULL },	      { "BOOT_ID", "boot_id", 0, SHEET_WIDE, NULL },
		{ "SESSION", "session", 10, SHEET_IF_ANY, NULL }, { "SELF", "self", 0, SHEET_ALWAYS, NULL },
	};

	sheet_show(columns, sizeof(columns) / sizeof(columns[0]), reply, 0);
}

static void show_accounts(const struct lb_reply *reply)
{
	static const struct sheet_column columns[] = {
		{ "PERCENT", "percent", 0, SHEET_ALWAYS, NULL }, { "ACCOUNT", "account", 12, SHEET_ALWAYS, NULL },
		{ "USED", "used", 0, SHEET_ALWAYS, NULL },	   { "ALLOWED", "allowed", 0, SHEET_ALWAYS, NULL },
		{ "RESERVE", "reserve", 0, SHEET_ALWAYS, NULL }, { "OF", "of", 12, SHEET_ALWAYS, NULL },
		{ "KEPT", "kept", 0, SHEET_IF_ANY, NULL },
	};

	sheet_show(columns, sizeof(columns) / sizeof(columns[0]), reply, 0);
}

static void show_why(const struct lb_reply *reply)
{
	cli_line(lb_reply_item(reply, 0));
}

static void show_info(const struct lb_reply *reply)
{
	cli_lines(reply_text(reply));
}

static void json_info(const struct lb_reply *reply)
{
	cli_json_info(reply_text(reply));
}

static void json_lines(const struct lb_reply *reply)
{
	cli_json_lines(reply_text(reply));
}

static int run_info(struct lb *lb, const struct cli_words *w)
{
	struct cli_near near = { .word = w->arguments[0] };
	const char *words[] = { "INFO", near.word };
	const struct lb_reply *reply;
	enum lb_result r = lb_command(lb, w->count + 1, words, &reply);
	char hint[128];

	for (const char *const *section = cli_sections; r == LB_REFUSED && *section; section++)
		cli_near_try(&near, *section, *section);
	if (r == LB_REFUSED)
		return cli_usage("There is no section \"%s\" of info: its sections are server, clients, locks, session, zookeeper, "
				 "audit, limits and stats.%s", near.word, cli_near_hint(&near, "", hint, sizeof(hint)));
	if (r != LB_OK)
		return cli_failed(lb, r);
	(cli_json_asked ? json_info : show_info)(reply);
	return CLI_OK;
}

/* ---- the table ---- */

const char *const cli_sections[] = { "server", "clients", "locks", "session", "zookeeper", "audit", "limits", "stats",
				     NULL };

#define RUN_USAGE "NAME {CMD [ARG]... | -c LINE}"

const struct cli_command cli_commands[WORD_COUNT] = {
	[WORD_LOCK] = {
		.id = WORD_LOCK, .word = "lock", .group = GROUP_LOCK,
		.summary = "run a command while it holds a lock, among all hosts",
		.sought = "run flock acquire", .usage = RUN_USAGE, .example = "--wait 60 nightly ./backup --full",
		.about = "Run CMD while it holds the lock NAME. Options end at NAME, as with flock(1).",
		.args_min = 1, .args_max = -1, .whole = cli_lock,
	},
	[WORD_HOLD] = {
		.id = WORD_HOLD, .word = "hold", .group = GROUP_LOCK,
		.summary = "hold a lock without a command, for the lines of a script",
		.sought = "keep", .usage = "{NAME | --any NAME...}", .example = "--also catalog deploy",
		.about = "Hold the lock NAME without a command: print its token in a line, and hold it\n"
			 "until a signal arrives or the reader of the output goes away. When it is lost:\n"
			 "print `lost`, exit with 79.",
		.args_min = 1, .args_max = -1, .whole = cli_lock,
	},
	[WORD_SEM] = {
		.id = WORD_SEM, .word = "sem", .group = GROUP_LOCK,
		.summary = "run a command while it holds permits of a semaphore",
		.sought = "semaphore permits", .usage = RUN_USAGE, .example = "--limit 3 encoder ffmpeg -i in.mov out.mp4",
		.about = "Run CMD while it holds permits of the semaphore NAME. All users of a semaphore\n"
			 "name the same limit.",
		.args_min = 1, .args_max = -1, .whole = cli_lock,
	},
	[WORD_CAMPAIGN] = {
		.id = WORD_CAMPAIGN, .word = "campaign", .group = GROUP_LOCK,
		.summary = "run a command while it leads an election",
		.sought = "elect lead election", .usage = "NAME DATA {CMD [ARG]... | -c LINE}",
		.example = "scheduler 10.0.0.1:80 ./scheduler",
		.about = "Run CMD while it leads the election NAME. Everybody can read DATA.",
		.args_min = 2, .args_max = -1, .whole = cli_lock,
	},
	[WORD_LS] = {
		.id = WORD_LS, .word = "ls", .group = GROUP_LOOK,
		.summary = "held locks, and where", .sought = "list locks show ps",
		.usage = "[PATTERN]", .example = "--all 'orders/*'",
		.about = "List the locks that this host holds or waits for; PATTERN may have * ? [abc].",
		.args_max = 1, .alone = cli_ls,
	},
	[WORD_TOP] = {
		.id = WORD_TOP, .word = "top", .group = GROUP_LOOK,
		.summary = "watch locks, by wait", .sought = "watch htop screen live", .usage = "", .example = "",
		.about = "Show the locks of this host on the whole terminal, each second. The locks with\n"
			 "the longest waits come first. Keys sort, filter, open a lock, and ask its\n"
			 "holders to release it; ? shows the keys.",
		.alone = cli_top,
	},
	[WORD_WHO] = {
		.id = WORD_WHO, .word = "who", .group = GROUP_LOOK,
		.summary = "holders and waiters", .sought = "holders queue waiters",
		.usage = "NAME", .example = "orders/42",
		.about = "Show the holders of the lock NAME and its waiting requests, on all hosts.",
		.args_min = 1, .args_max = 1, .run = cli_who,
	},
	[WORD_WHY] = {
		.id = WORD_WHY, .word = "why", .group = GROUP_LOOK,
		.summary = "the cause that blocks me", .sought = "blocked blocks",
		.usage = "NAME", .example = "orders/42",
		.about = "Say in a sentence why the lock NAME is not granted yet.",
		.args_min = 1, .args_max = 1, .request = "WHY", .show = show_why,
	},
	[WORD_HISTORY] = {
		.id = WORD_HISTORY, .word = "history", .group = GROUP_LOOK,
		.summary = "past holders", .sought = "past journal held when",
		.usage = "NAME", .example = "orders/42 --at 20:31:05",
		.about = "Show who held the lock NAME, when, and how that ended; then long waits, and gaps\n"
			 "in the log. Only root and the groups adm and systemd-journal may read systemd's\n"
			 "journal. T: 20:31:05, '2026-11-30 20:31', yesterday, -2h, @SEC.",
		.args_min = 1, .args_max = 1, .alone = cli_history, .take = cli_history_take,
	},
	[WORD_LIMIT] = {
		.id = WORD_LIMIT, .word = "limit", .group = GROUP_LOOK, .summary = "permits of a semaphore", .sought = "permit",
		.usage = "NAME [N]", .example = "encoder",
		.about = "Show how many permits the semaphore NAME has; with N, change that.\n"
			 "Exit with 1 if there is no such semaphore.",
		.operators = "Others ask one of them.", .args_min = 1, .args_max = 2, .run = run_limit,
	},
	[WORD_LEADER] = {
		.id = WORD_LEADER, .word = "leader", .group = GROUP_LOOK, .summary = "leader of an election", .usage = "NAME",
		.example = "scheduler",
		.about = "Show who leads: token, host and data, with tabs between. Exit with 1 if nobody\n"
			 "does.",
		.args_min = 1, .args_max = 1, .run = cli_leader,
	},
	[WORD_OBSERVE] = {
		.id = WORD_OBSERVE, .word = "observe", .group = GROUP_LOOK,
		.summary = "each change of leader", .sought = "watch",
		.usage = "NAME", .example = "scheduler",
		.about = "Print the leader now and after each change, until interrupted. Token 0: nobody\n"
			 "leads.",
		.args_min = 1, .args_max = 1, .run = cli_observe,
	},
	[WORD_HOSTS] = {
		.id = WORD_HOSTS, .word = "hosts", .group = GROUP_LOOK,
		.summary = "hosts that share locks", .sought = "nodes members",
		.usage = "", .example = "",
		.about = "List the hosts that share locks with this host.",
		.request = "HOSTS", .show = show_hosts,
	},
	[WORD_INFO] = {
		.id = WORD_INFO, .word = "info", .group = GROUP_LOOK,
		.summary = "state and counters", .sought = "status state stats session",
		.usage = "[SECTION]", .example = "session",
		.about = "Show state and counters. SECTION: server, clients, locks, session, zookeeper,\n"
			 "audit, limits or stats.",
		.args_max = 1, .run = run_info,
	},
	[WORD_CHECK] = {
		.id = WORD_CHECK, .word = "check", .group = GROUP_LOOK,
		.summary = "is all well? (Nagios)", .sought = "health", .usage = "",
		.example = "--lock monitor --warning limit=70,wait=60",
		.about = "Say in a line whether all is well. Exit with 0, 1 (warning), 2 (critical) or 3\n"
			 "(unknown). LIMITS are thresholds, with commas between: limit=PERCENT (use of any\n"
			 "limit), wait=SEC (the longest wait), proof=SEC (since the session was last\n"
			 "proven), answer=SEC (until the broker answers).\n"
			 "Defaults (warning, critical): limit 80, 95; answer 1, 5.",
		.alone = cli_check, .take = cli_check_take,
	},
	[WORD_METRICS] = {
		.id = WORD_METRICS, .word = "metrics", .group = GROUP_LOOK,
		.summary = "counters for Prometheus", .sought = "prometheus",
		.usage = "", .example = "--textfile lockbroker.prom",
		.about = "Show state and counters as Prometheus reads them.",
		.alone = cli_metrics,
	},
	[WORD_HTTP] = {
		.id = WORD_HTTP, .word = "http", .group = GROUP_LOOK,
		.summary = "metrics and page by HTTP", .sought = "serve", .usage = "",
		.example = "--listen 127.0.0.1:9764",
		.about = "Serve /metrics and /healthz to Prometheus, a page to browsers on this host,\n"
			 "or both, until it is ended.",
		.alone = cli_http, .take = cli_http_take,
	},
	[WORD_PING] = {
		.id = WORD_PING, .word = "ping", .group = GROUP_LOOK,
		.summary = "does the broker answer?", .sought = "alive", .usage = "",
		.example = "",
		.about = "Check that the broker answers.",
		.run = run_ping,
	},
	[WORD_CALL] = {
		.id = WORD_CALL, .word = "call", .group = GROUP_LOOK, .summary = "send any request", .sought = "request send",
		.usage = "[COMMAND [ARG]...]", .example = "HOLDERS orders/42",
		.about = "Send any COMMAND of the protocol and show the reply; exit with 1 if it is an\n"
			 "error. Without COMMAND, read a request from each line of the standard input.",
		.args_max = -1, .alone = cli_call,
	},
	[WORD_REVOKE] = {
		.id = WORD_REVOKE, .word = "revoke", .group = GROUP_OPERATE,
		.summary = "ask holders to release", .sought = "ask",
		.usage = "NAME [REASON]", .example = "orders/42 'backup at noon'",
		.about = "Ask the holders of the lock NAME, on all hosts, to release it. Exit with 1 if no\n"
			 "holder was asked.",
		.operators = "Others ask the holder, whom `lockbroker who NAME` shows.", .args_min = 1, .args_max = 2,
		.run = run_revoke,
	},
	[WORD_FORCE_UNLOCK] = {
		.id = WORD_FORCE_UNLOCK, .word = "force-unlock", .group = GROUP_OPERATE, .summary = "take a lock from holders",
		.sought = "unlock release force break kill", .usage = "NAME", .example = "orders/42",
		.about = "Take the lock NAME from its holders: the broker notifies them, but they\n"
			 "may go on for a moment. Try `lockbroker revoke` before. Exit with 1 if nobody\n"
			 "held it.",
		.operators = "Others ask the holder, whom `lockbroker who NAME` shows, to end.", .args_min = 1,
		.args_max = 1, .run = run_force_unlock,
	},
	[WORD_DRAIN] = {
		.id = WORD_DRAIN, .word = "drain", .group = GROUP_OPERATE, .summary = "stop grants on this host",
		.sought = "stop shutdown maintenance", .usage = "", .example = "--wait",
		.about = "The broker grants nothing any longer: waits fail, holders are asked to release,\n"
			 "other hosts can be granted the locks.",
		.operators = "Others can end their own commands that hold locks.", .run = cli_drain,
	},
	[WORD_RESTART] = {
		.id = WORD_RESTART, .word = "restart", .group = GROUP_OPERATE,
		.summary = "restart the broker", .sought = "upgrade",
		.usage = "", .example = "",
		.about = "Replace the broker by a new process of the installed program; clients notice\n"
			 "nothing.",
		.operators = "Others ask one of them.", .run = run_restart,
	},
	[WORD_RELOAD] = {
		.id = WORD_RELOAD, .word = "reload", .group = GROUP_OPERATE,
		.summary = "read the configuration", .sought = "reread",
		.usage = "", .example = "",
		.about = "The broker reads its configuration again; show what has changed.",
		.operators = "`lockbrokerd --check-config` finds errors in a file.", .request = "RELOAD", .show = show_info,
		.json = json_lines,
	},
	[WORD_CONFIG] = {
		.id = WORD_CONFIG, .word = "config", .group = GROUP_OPERATE,
		.summary = "show the configuration", .sought = "settings keys",
		.usage = "[KEY]", .example = "'limits.*'",
		.about = "Show the keys of the broker's configuration and their values; KEY may have\n"
			 "* ? [abc]. Exit with 1 if there is no such key.",
		.operators = "`lockbrokerd --print-config` shows the defaults.", .args_max = 1, .run = run_config,
	},
	[WORD_ACCOUNTS] = {
		.id = WORD_ACCOUNTS, .word = "accounts", .group = GROUP_OPERATE, .summary = "users who use up limits",
		.sought = "users usage quota", .usage = "", .example = "",
		.about = "Show how much of each limit every user uses; the users nearest to their share\n"
			 "come first.",
		.operators = "`lockbroker info limits` shows the limits.", .request = "ACCOUNTS", .show = show_accounts,
	},
	[WORD_ACCESS] = {
		.id = WORD_ACCESS, .word = "access", .group = GROUP_OPERATE, .summary = "a user's rights, and why",
		.sought = "permissions rules may", .usage = "USER NAME [UNIT]", .example = "alice orders/42",
		.about = "Show what USER may do with the lock NAME, and by which rule. With UNIT: for a\n"
			 "process of that systemd unit; with the word unknown as UNIT: for a process whose\n"
			 "unit could not be read.",
		.operators = "Others see the rule in the error of a refused request.", .args_min = 2, .args_max = 3,
		.run = cli_access,
	},
	[WORD_AUDIT] = {
		.id = WORD_AUDIT, .word = "audit", .group = GROUP_OPERATE,
		.summary = "find stray znodes", .sought = "strays fsck", .usage = "",
		.example = "",
		.about = "Examine all lock directories and delete stray znodes of this host. Exit with 1\n"
			 "if something is wrong.",
		.operators = "`lockbroker info audit` counts the znodes that were found.", .run = run_audit,
	},
	[WORD_LOG] = {
		.id = WORD_LOG, .word = "log", .group = GROUP_OPERATE,
		.summary = "latest events", .sought = "events",
		.usage = "[RECORDS]", .example = "100",
		.about = "Show the latest events in the broker, the oldest first. With RECORDS, show only\n"
			 "the last RECORDS events.",
		.operators = "`journalctl -u lockbrokerd` shows the daemon's log.", .args_max = 1, .run = cli_log,
	},
};

const struct cli_command *cli_command_find(const char *word)
{
	for (size_t i = 0; i < WORD_COUNT; i++)
		if (strcmp(word, cli_commands[i].word) == 0)
			return &cli_commands[i];
	return NULL;
}

int cli_no_command(const char *word)
{
	static const char *const others[][2] = { { "version", "--version" }, { "help", "help" } };
	struct cli_near near = { .word = word };
	char hint[128], sought[64];

	for (size_t i = 0; i < WORD_COUNT; i++) {
		cli_near_try(&near, cli_commands[i].word, cli_commands[i].word);
		for (const char *at = cli_commands[i].sought; at && *at; at += strspn(at, " ")) {
			size_t len = strcspn(at, " ");

			snprintf(sought, sizeof(sought), "%.*s", (int)len, at);
			cli_near_try(&near, sought, cli_commands[i].word);
			at += len;
		}
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cli_near_try(&near, others[i][0], others[i][1]);
	return cli_usage("There is no command \"%s\".%s", word, cli_near_hint(&near, "", hint, sizeof(hint)));
}

/* ---- running ---- */

static int ask(struct lb *lb, const struct cli_words *w)
{
	const struct lb_reply *reply;
	int status = cli_ask(lb, w->command->request, w->arguments[0], &reply);

	if (status == CLI_OK && !cli_json_asked)
		w->command->show(reply);
	else if (status == CLI_OK)
		(w->command->json ? w->command->json : cli_json_line)(reply);
	return status;
}

static int with_broker(const struct cli_words *w)
{
	const struct cli_command *command = w->command;
	/* To look at a limit is everybody's. */
	bool operators = command->operators && (command->group == GROUP_OPERATE || w->count > 1);
	char path[OPERATORS_PATH_MAX];
	struct lb *lb;
	enum lb_result r = handle_open_now(operators ? operators_socket(w->socket, path) : w->socket, &lb);
	int status = r == LB_OK ? (command->run ? command->run : ask)(lb, w) : cli_failed(lb, r);

	lb_close(lb);
	return status;
}

int cli_command_run(const struct cli_words *before, const struct cli_command *command, int argc, char **argv)
{
	struct cli_words w = { .command = command, .socket = before->socket, .take = command->take };
	const char *const usage = command->usage;
	int status;

	cli_say_about(command->word, "");
	if (cli_json_asked && !cli_option_find(command, 0, "json", 4))
		return cli_usage("%s has no --json.", command->word);
	if (command->whole)
		return command->whole(before->socket, command, argc, argv);
	status = cli_words_read(&w, argc, argv);
	/* To Nagios, usage is UNKNOWN. */
	if (status >= 0)
		return command->alone == cli_check ? CLI_UNKNOWN : status;
	if (w.asks == ASKS_HELP)
		return cli_help(command);
	if (w.asks == ASKS_VERSION)
		return cli_version();
	if (strncmp(usage, "NAME", 4) == 0)
		cli_say_about(command->word, w.arguments[0]);
	return cli_written(command->alone ? command->alone(&w) : with_broker(&w));
}
