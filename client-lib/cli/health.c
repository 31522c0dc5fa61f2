/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * lockbroker metrics shows what METRICS answers, or writes it to a file for a collector; lockbroker check judges it in a
 * line, as Nagios and its like expect. Both say so if the daemon does not answer in time: a file that is old would look as
 * if all were well.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/shown.h"
#include "client-lib/handle.h"
#include "client-lib/request.h"
#include "protocol/bytes.h"

static const char down[] = "# HELP lockbroker_up 1: the daemon has answered.\n"
			   "# TYPE lockbroker_up gauge\n"
			   "lockbroker_up 0\n";

static const int64_t PATIENCE_MS = 5000;

/* How long check waits for a lock: a host that keeps an idle one has given it back by then. */
#define CHECK_WAIT_MS "5000"

/* The daemon's text, which lives as long as the handle; otherwise the handle says why there is none. */
static enum lb_result ask(const char *socket, struct lb **ret, struct slice *ret_text)
{
	const char *words[] = { "METRICS" };
	const struct lb_reply *reply;
	enum lb_result r = handle_open_now(socket, ret);

	lb_set_patience(*ret, PATIENCE_MS);
	if (r == LB_OK)
		r = lb_command(*ret, 1, words, &reply);
	if (r == LB_OK)
		*ret_text = reply_text(reply);
	return r;
}

/* ---- metrics ---- */

static int cannot_write(const char *path)
{
	cli_say("Cannot write %s: %s.", path, strerror(errno));
	return CLI_OSERR;
}

/* Whoever reads the file sees the former text or this one, whole: another file takes its name. A device or a link, such as
 * /dev/stdout, would be gone for everybody. */
static int write_file(const char *path, struct slice text)
{
	char *made = NULL;
	int fd, status = CLI_OK;
	struct stat there;

	if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
		cli_say("Cannot write %s: it is no regular file, and --textfile replaces FILE. Without --textfile the text goes to "
			"the standard output.",
			path);
		return CLI_OSERR;
	}
	if (asprintf(&made, "%s.XXXXXX", path) < 0)
		abort();
	fd = mkostemp(made, O_CLOEXEC);
	if (fd < 0) {
		status = cannot_write(path);
		free(made);
		return status;
	}
	if (write(fd, text.data, text.len) != (ssize_t)text.len || fchmod(fd, 0644) < 0 || rename(made, path) < 0) {
		status = cannot_write(path);
		unlink(made);
	}
	close(fd);
	free(made);
	return status;
}

int cli_metrics(const struct cli_words *w)
{
	const char *path = w->given[OPT_TEXTFILE];
	struct slice text = SLICE(down);
	struct lb *lb;
	enum lb_result r = ask(w->socket, &lb, &text);
	int status = r == LB_OK ? CLI_OK : cli_failed(lb, r);

	if (path) {
		int written = write_file(path, text);

		status = written == CLI_OK ? status : written;
	} else {
		cli_lines(text);
	}
	lb_close(lb);
	return status;
}

/* ---- check ---- */

/* The codes of Nagios; a worse state is a larger number, except that of UNKNOWN. */
enum verdict { VERDICT_OK, VERDICT_WARNING, VERDICT_CRITICAL, VERDICT_UNKNOWN };

/* What has thresholds. */
enum measured { LIMIT, WAIT, PROOF, ANSWER, MEASURED };

static const struct {
	const char *word, *unit, *key; /* of JSON: those of METRICS are called as there */
	const char *sentence;          /* behind the number */
} measures[MEASURED] = { [LIMIT] = { "limit", "%", "limit_percent", "of a limit is in use" },
			 [WAIT] = { "wait", "s", "longest_wait_seconds", "is the longest wait" },
			 [PROOF] = { "proof", "s", "session_proof_age_seconds", "is the age of the session's proof" },
			 [ANSWER] = { "answer", "s", "answer_seconds", "passed before the daemon answered" } };

struct check {
	double thresholds[MEASURED][VERDICT_CRITICAL + 1]; /* by verdict; below 0: none */
	double values[MEASURED];
	char fullest[64]; /* the pool of LIMIT */
	char refusal[512], trouble[512]; /* what keeps locks from being had, and ZooKeeper from serving; "": nothing is known */
	char lacks[128];                 /* what the server cannot do, and the broker replaces; "": nothing */
	const char *name; /* of a lock to be taken; NULL: none */
	char taken[64];   /* how that went, for the line that all is well */
	double lock_s;    /* how long it took; below 0: it was not taken */
	enum verdict verdict;
	char why[2048];
};

/* A sentence about what is not as it should be; the worst verdict counts, and all are told. */
static void judge(struct check *c, enum verdict verdict, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void judge(struct check *c, enum verdict verdict, const char *format, ...)
{
	size_t len = strlen(c->why);
	va_list args;

	if (verdict > c->verdict)
		c->verdict = verdict;
	if (len > 0 && len + 2 < sizeof(c->why)) {
		memcpy(c->why + len, "; ", sizeof("; "));
		len += 2;
	}
	va_start(args, format);
	vsnprintf(c->why + len, sizeof(c->why) - len, format, args);
	va_end(args);
}

static double seconds_since(int64_t then_ns)
{
	return (double)(request_clock_ns() - then_ns) / 1e9;
}

/* The number behind that name, labels included, at the beginning of a line; `otherwise` if there is none. */
static double value_of(const char *text, const char *name, double otherwise)
{
	size_t len = strlen(name);
	const char *at = text;

	while ((at = strstr(at, name))) {
		if ((at == text || at[-1] == '\n') && at[len] == ' ')
			return strtod(at + len, NULL);
		at += len;
	}
	return otherwise;
}

static void measure_pools(struct check *c, const char *text)
{
	static const char used[] = "\nlockbroker_pool_used{pool=\"";
	char pool[64], name[128];
	const char *at = text;

	while ((at = strstr(at, used))) {
		double limit, share;

		at += strlen(used);
		/* Who gets no page of delegations locks by messages: nothing fails when there are no more. */
		if (sscanf(at, "%63[a-z_]", pool) != 1 || strcmp(pool, "pages") == 0)
			continue;
		snprintf(name, sizeof(name), "lockbroker_pool_limit{pool=\"%s\"}", pool);
		limit = value_of(text, name, 0);
		snprintf(name, sizeof(name), "lockbroker_pool_used{pool=\"%s\"}", pool);
		share = limit > 0 ? 100 * value_of(text, name, 0) / limit : 0;
		if (share >= c->values[LIMIT]) {
			c->values[LIMIT] = share;
			memcpy(c->fullest, pool, sizeof(c->fullest));
		}
	}
}

/* The causes are no numbers: METRICS does not have them. */
static void ask_causes(struct check *c, struct lb *lb)
{
	struct slice info = reply_text(cli_reply(lb, "INFO", "zookeeper")), refusal = reply_line(info, "\nrefusal:"),
		     trouble = reply_line(info, "\ntrouble:"), lacks = reply_line(info, "\nzookeeper_lacks:");

	snprintf(c->refusal, sizeof(c->refusal), "%.*s", (int)refusal.len, refusal.data);
	snprintf(c->trouble, sizeof(c->trouble), "%.*s", (int)trouble.len, trouble.data);
	snprintf(c->lacks, sizeof(c->lacks), "%.*s", (int)lacks.len, lacks.data);
}

static void judge_session(struct check *c, const char *text)
{
	const char *joint = *c->trouble ? ": " : "";
	double away_s = value_of(text, "lockbroker_session_unannounced_seconds", 0);

	if (value_of(text, "lockbroker_locks_barred", 0) > 0)
		judge(c, VERDICT_CRITICAL, "no lock can be had: %s", c->refusal);
	else if (value_of(text, "lockbroker_session_state{state=\"lost\"}", 0) > 0)
		judge(c, VERDICT_CRITICAL, "the session is lost, and with it every lock that was held%s%s", joint, c->trouble);
	else if (value_of(text, "lockbroker_session_state{state=\"none\"}", 0) > 0)
		judge(c, VERDICT_CRITICAL, "nothing can be granted: no session with ZooKeeper is proven%s%s", joint, c->trouble);
	else if (value_of(text, "lockbroker_zookeeper_connected", 0) > 0 &&
		 away_s > value_of(text, "lockbroker_session_timeout_seconds", 0))
		judge(c, VERDICT_CRITICAL, "this host's own znode could not be written for %.0f s%s%s", away_s, joint, c->trouble);
	else if (value_of(text, "lockbroker_names_refused", 0) > 0)
		judge(c, VERDICT_WARNING, "%s", c->refusal);
	if (value_of(text, "lockbroker_session_state{state=\"jeopardy\"}", 0) > 0)
		judge(c, VERDICT_WARNING, "the session is in jeopardy: grants are proven safe for %.1f s more",
		      value_of(text, "lockbroker_session_safe_seconds", 0));
	if (value_of(text, "lockbroker_files_lost", 0) > 0)
		judge(c, VERDICT_CRITICAL, "%.0f files or sockets of the daemon were removed and cannot be made again: its log "
		      "says which, and what to do", value_of(text, "lockbroker_files_lost", 0));
	if (value_of(text, "lockbroker_stopping", 0) > 0)
		judge(c, VERDICT_WARNING, "the daemon is stopping");
	else if (value_of(text, "lockbroker_draining", 0) > 0)
		judge(c, VERDICT_WARNING, "operators drain the daemon: it grants nothing (lockbroker drain --off)");
}

static void judge_measures(struct check *c)
{
	for (int i = 0; i < MEASURED; i++)
		for (enum verdict v = VERDICT_CRITICAL; v > VERDICT_OK; v--) {
			if (c->thresholds[i][v] < 0 || c->values[i] < c->thresholds[i][v])
				continue;
			judge(c, v, "%.1f %s %s%s%s", c->values[i], measures[i].unit, measures[i].sentence,
			      i == LIMIT ? ": " : "", i == LIMIT ? c->fullest : "");
			break;
		}
}

/* A lock that somebody else holds could be had, too. */
static void judge_lock(struct check *c, struct lb *lb)
{
	const char *take[] = { "LOCK", c->name, "WAIT", CHECK_WAIT_MS, "FRESH" }, *give[] = { "UNLOCK", c->name };
	const struct lb_reply *reply;
	int64_t begin_ns = request_clock_ns();
	enum lb_result r;

	lb_set_patience(lb, PATIENCE_MS + strtol(CHECK_WAIT_MS, NULL, 10));
	r = lb_command(lb, 5, take, &reply);
	if (r == LB_OK && lb_reply_type(reply) == LB_REPLY_NIL) {
		snprintf(c->taken, sizeof(c->taken), "the lock is held by another; ");
		return;
	}
	if (r == LB_OK) {
		c->lock_s = seconds_since(begin_ns);
		snprintf(c->taken, sizeof(c->taken), "the lock was taken in %.3f s; ", c->lock_s);
		r = lb_command(lb, 2, give, &reply);
	}
	if (r != LB_OK)
		judge(c, r == LB_DENIED || r == LB_BADNAME || r == LB_MISMATCH ? VERDICT_UNKNOWN : VERDICT_CRITICAL, "%s",
		      lb_error(lb));
}

static const char *const verdict_words[] = { "OK", "WARNING", "CRITICAL", "UNKNOWN" };

/* What was measured is null if the daemon has not answered. */
static void json_verdict(const struct check *c, const char *text)
{
	printf("{\"verdict\":\"%s\",\"why\":", verdict_words[c->verdict]);
	if (*c->why)
		cli_json_text(slice_of(c->why));
	else
		printf("null");
	for (int i = 0; i < MEASURED; i++)
		printf(*text ? ",\"%s\":%.3f" : ",\"%s\":null", measures[i].key, c->values[i]);
	printf(c->lock_s >= 0 ? ",\"lock_seconds\":%.3f" : ",\"lock_seconds\":null", c->lock_s);
	printf(*text ? ",\"locks\":%.0f,\"waiting_requests\":%.0f}\n" : ",\"locks\":null,\"waiting_requests\":null}\n",
	       value_of(text, "lockbroker_locks", 0), value_of(text, "lockbroker_waiting_requests", 0));
}

static void print_verdict(const struct check *c, const char *text)
{
	bool alone = value_of(text, "lockbroker_session_state{state=\"safe\"}", -1) < 0;
	char shown[sizeof(c->why)];

	printf("LOCKBROKER %s - ", verdict_words[c->verdict]);
	if (*c->why)
		printf("%s", cli_shown(c->why, shown, sizeof(shown)));
	else
		printf("%s%s%s%s; %.0f locks, %.0f requests wait, the oldest for %.1f s; %.1f %% of the fullest limit (%s)",
		       c->taken, alone ? "standalone" : "the session is safe", *c->lacks ? "; the server lacks " : "", c->lacks,
		       value_of(text, "lockbroker_locks", 0),
		       value_of(text, "lockbroker_waiting_requests", 0), c->values[WAIT], c->values[LIMIT], c->fullest);
	if (*text) {
		printf(" |");
		for (int i = 0; i < MEASURED; i++) {
			printf(" %s=%.3f%s;", measures[i].word, c->values[i], measures[i].unit);
			for (int v = VERDICT_WARNING; v <= VERDICT_CRITICAL; v++) {
				if (c->thresholds[i][v] >= 0)
					printf("%g", c->thresholds[i][v]);
				printf(";");
			}
			printf(i == LIMIT ? "0;100" : "0");
		}
		if (c->lock_s >= 0)
			printf(" lock=%.3fs;;;0", c->lock_s);
		printf(" locks=%.0f;;;0 waiting=%.0f;;;0", value_of(text, "lockbroker_locks", 0),
		       value_of(text, "lockbroker_waiting_requests", 0));
	}
	putchar('\n');
}

/* limit=PERCENT,wait=SEC,... False: it is none of that. */
static bool read_thresholds(struct check *c, enum verdict verdict, const char *given)
{
	char limit[] = "limit", wait[] = "wait", proof[] = "proof", answer[] = "answer";
	char *const words[] = { limit, wait, proof, answer, NULL };
	char *copy = strdup(given), *text = copy, *value, *end = copy;
	bool right = copy;

	while (right && *text) {
		int which = getsubopt(&text, words, &value);
		double number = which >= 0 && value && *value ? strtod(value, &end) : -1;

		right = number >= 0 && number <= 1e9 && !*end;
		if (right)
			c->thresholds[which][verdict] = number;
	}
	free(copy);
	return right;
}

static struct check check = { .thresholds = { [LIMIT] = { -1, 80, 95 },
					      [WAIT] = { -1, -1, -1 },
					      [PROOF] = { -1, -1, -1 },
					      [ANSWER] = { -1, 1, 5 } },
			      .lock_s = -1 };

int cli_check_take(void *context, enum cli_option_id id, char *value)
{
	if (id == OPT_LOCK)
		check.name = value;
	else if (!read_thresholds(&check, id == OPT_WARNING ? VERDICT_WARNING : VERDICT_CRITICAL, value))
		return -EINVAL;
	return 0;
}

int cli_check(const struct cli_words *w)
{
	struct check *c = &check;
	const char *text = "";
	int64_t begin_ns = request_clock_ns();
	struct bytes copy = { 0 };
	struct slice answer;
	struct lb *lb;
	enum lb_result r = ask(w->socket, &lb, &answer);

	c->values[ANSWER] = seconds_since(begin_ns);
	if (r == LB_OK) {
		bytes_slice(&copy, answer);
		bytes_char(&copy, '\0');
		text = copy.data;
		c->values[WAIT] = value_of(text, "lockbroker_longest_wait_seconds", 0);
		c->values[PROOF] = value_of(text, "lockbroker_session_proof_age_seconds", 0);
		measure_pools(c, text);
		ask_causes(c, lb);
		judge_session(c, text);
		judge_measures(c);
		if (c->name)
			judge_lock(c, lb);
	} else if (r == LB_CONNECTION || r == LB_UNAVAILABLE || r == LB_DRAINING || r == LB_LIMIT) {
		/* Who is refused for a limit is refused like those who need a lock. */
		judge(c, VERDICT_CRITICAL, "%s", lb_error(lb));
	} else {
		judge(c, VERDICT_UNKNOWN, "%s", lb_error(lb));
	}
	if (cli_json_asked)
		json_verdict(c, text);
	else
		print_verdict(c, text);
	bytes_free(&copy);
	lb_close(lb);
	return (int)c->verdict;
}
