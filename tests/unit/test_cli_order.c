/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line of `lockbroker lock` and its like means: as it would to flock(1), where both have it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/operators.h"
#include "client-lib/cli/order.h"
#include "client-lib/cli/progress.h"
#include "client-lib/cli/say.h"
#include "client-lib/socket_path.h"
#include "protocol/resp.h"

enum { WORDS_MAX = 256, LINE_MAX_BYTES = 4096 };

static const char *said;   /* on the standard error */
static struct cli_order o; /* the latest one */

/* A line of words, without quotes; "_" is a space inside a word. */
static int read_line(const char *line)
{
	static char text[LINE_MAX_BYTES], *words[WORDS_MAX];
	int argc = 0, status;

	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		for (char *at = word; (at = strchr(at, '_'));)
			*at = ' ';
		words[argc++] = word;
	}
	words[argc] = NULL;
	unit_capture(STDERR_FILENO);
	status = cli_order_read(&o, cli_command_find(words[0]), argc, words);
	said = unit_captured();
	return status;
}

static void reads(const char *line)
{
	if (read_line(line) != CLI_OK)
		fail_msg("%s: %s", line, said);
	assert_string_equal(said, "");
}

static void refuses(const char *line, const char *sentence)
{
	if (read_line(line) != CLI_USAGE)
		fail_msg("%s: taken", line);
	if (!strstr(said, sentence))
		fail_msg("%s: %s", line, said);
}

TEST(the_first_word_is_the_lock_and_the_rest_the_command)
{
	reads("lock a cmd -n -- x");
	assert_string_equal(o.names[0], "a");
	assert_int_equal(o.count, 1);
	assert_string_equal(o.command[0], "cmd");
	assert_string_equal(o.command[1], "-n");
	assert_string_equal(o.command[2], "--");
	assert_int_equal(o.options.timeout_ms, -1);
	assert_true(o.with_dashes);
}

TEST(one_pair_of_dashes_behind_the_name_is_skipped)
{
	reads("lock a -- cmd x");
	assert_string_equal(o.command[0], "cmd");
	assert_false(o.with_dashes);
	reads("lock a -- -- cmd");
	assert_string_equal(o.command[0], "--");
	reads("lock -- -a -c true");
	assert_string_equal(o.names[0], "-a");
	assert_string_equal(o.command[2], "true");
	reads("lock a -- -c true");
	assert_string_equal(o.command[0], "-c");
}

TEST(a_line_goes_to_the_shell)
{
	setenv("SHELL", "/bin/some", 1);
	reads("lock a -c echo_x;_exit_3");
	assert_string_equal(o.command[0], "/bin/some");
	assert_string_equal(o.command[1], "-c");
	assert_string_equal(o.command[2], "echo x; exit 3");
	assert_null(o.command[3]);
	unsetenv("SHELL");
	reads("lock a --command x");
	assert_string_equal(o.command[0], "/bin/sh");
	setenv("SHELL", "", 1);
	reads("campaign e here -c x");
	assert_string_equal(o.command[0], "/bin/sh");
	assert_string_equal(o.data, "here");
	refuses("lock a -c", "-c needs exactly one word, LINE");
	refuses("lock a -c x y", "-c needs exactly one word, LINE");
	refuses("lock a --command", "--command needs exactly one word");
	refuses("lock -c x a", "lock has no option -c");
}

TEST(options_of_flock_mean_what_they_mean_there)
{
	reads("lock -s a true");
	assert_true(o.options.shared);
	reads("lock -s -x a true");
	assert_false(o.options.shared);
	reads("lock --shared -e a true");
	assert_false(o.options.shared);
	reads("lock -sn a true");
	assert_true(o.options.shared && o.options.timeout_ms == 0);
	for (size_t i = 0; i < 6; i++) {
		const char *const lines[] = { "lock -n a true", "lock --nb a true", "lock --nonblock a true",
					      "lock --nonblocking a true", "lock -w 0 a true", "lock --timeout=0 a true" };

		reads(lines[i]);
		assert_int_equal(o.options.timeout_ms, 0);
	}
	reads("lock -w 2.5 a true");
	assert_int_equal(o.options.timeout_ms, 2500);
	reads("lock --wait .0001 a true");
	assert_int_equal(o.options.timeout_ms, 1);
	reads("lock a true");
	assert_int_equal(o.conflict, 75);
	reads("lock -E 0 a true");
	assert_int_equal(o.conflict, 0);
	reads("lock --conflict-exit-code=255 a true");
	assert_int_equal(o.conflict, 255);
	reads("lock --close --verbose a true");
	assert_true(o.closes && o.verbose);
	reads("lock --no-fork a true");
	assert_true(o.in_place);
	reads("lock -h");
	assert_int_equal(o.asks, ASKS_HELP);
	reads("sem --version");
	assert_int_equal(o.asks, ASKS_VERSION);
	refuses("lock -u a true", "lock has no -u: a lock is released when CMD ends");
	refuses("hold --unlock a", "hold has no --unlock: ");
}

TEST(more_locks_have_an_option_each)
{
	char line[LINE_MAX_BYTES] = "lock";

	reads("lock -a b -a c a true");
	assert_int_equal(o.count, 3);
	assert_string_equal(o.names[0], "a");
	assert_string_equal(o.names[1], "b");
	assert_string_equal(o.names[2], "c");
	for (int i = 1; i < LIMIT_NAMES_MAX; i++)
		strcat(line, " -a x");
	strcat(line, " a true");
	reads(line);
	assert_int_equal(o.count, LIMIT_NAMES_MAX);
	line[4] = '\0';
	for (int i = 0; i < LIMIT_NAMES_MAX; i++)
		strcat(line, " -a x");
	strcat(line, " a true");
	refuses(line, "lock takes at most 64 names, not 65.");
	refuses("lock -d text -a b a true", "-d cannot be used with several names");
	refuses("sem -l 1 -a b a true", "sem has no option -a.");
}

TEST(what_takes_our_place_leaves_nobody_to_see_to_the_rest)
{
	refuses("lock -F -o a true", "-F does not go with -o:");
	refuses("lock --close --no-fork a true", "-F does not go with -o:");
	refuses("lock -k 1 -F a true", "-F does not go with -k:");
	refuses("sem -l 1 -r TERM -F a true", "-F does not go with -r:");
	refuses("lock -F -L 5 a true", "-F does not go with -L:");
	refuses("lock -F --min-hold 5 a true", "-F does not go with --min-hold:");
	reads("lock -F -n -E 3 --splay 1 --owner x -d text --connect 1 --verbose a true");
}

TEST(values_are_checked)
{
	static const char *const seconds[] = { "-w", "--timeout", "-k", "--connect", "--min-hold", "--splay" };
	static const char *const wrong[] = { "soon", "-1", "nan", "inf", "1s", "1,5", "_1" };
	char line[128], sentence[128];

	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
		for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
			snprintf(line, sizeof(line), "lock %s %s a true", seconds[i], wrong[k]);
			snprintf(sentence, sizeof(sentence), "%s needs a number of seconds, not \"", seconds[i]);
			refuses(line, sentence);
		}
	refuses("lock -L 0 a true", "-L needs a number of seconds greater than 0, not \"0\"");
	refuses("lock --lease=x a true", "--lease needs a number of seconds greater than 0, not \"x\"");
	refuses("lock -E 256 a true", "-E needs an exit status of 0 to 255, not \"256\"");
	refuses("lock -E -1 a true", "-E needs an exit status of 0 to 255, not \"-1\"");
	refuses("lock -E x a true", "-E needs an exit status");
	refuses("lock -r TREM a true", "-r needs a signal, such as TERM, not \"TREM\"");
	refuses("sem -l 0 a true", "-l needs a number of permits, from 1 on, not \"0\"");
	refuses("sem -l 2 -K 1000001 a true", "-K needs a number of permits");
	refuses("sem -l 2 --count=0 a true", "--count needs a number of permits");
	refuses("sem -l 2 -K 3 a true", "-K asks for 3 permits, and -l says that the semaphore has 2.");
	refuses("sem a true", "sem needs -l N");
	refuses("lock -w", "-w needs a number of seconds.");
	refuses("lock --owner", "--owner needs a text of at most 64 printable ASCII characters without spaces.");
	refuses("lock -a", "-a needs a name.");
}

TEST(each_verb_has_its_own_options)
{
	reads("sem -l 4 -K 2 s true");
	assert_true(o.limit == 4 && o.permits == 2);
	reads("hold -n --json -a b a");
	assert_null(o.command);
	assert_true(cli_json_asked);
	refuses("lock -c 2 a true", "lock has no option -c.");
	refuses("lock --count 2 a true", "lock has no option --count.");
	refuses("lock --json a true", "lock has no option --json.");
	refuses("lock --nonsense a true", "lock has no option --nonsense.");
	refuses("lock -O x a true", "lock has no option -O.");
	refuses("hold -k 1 a", "hold has no option -k.");
	refuses("hold -F a", "hold has no option -F.");
	refuses("hold a true", "hold runs no command, and takes one NAME (-a NAME for each further one): it does not take ");
	refuses("hold --any a b -- true", "hold runs no command: it does not take \"--\".");
	refuses("campaign -s e d true", "campaign has no option -s.");
	refuses("campaign --owner=x e d true", "campaign has no option --owner=x.");
	refuses("campaign e -- true", "DATA is missing");
	refuses("campaign e d", "CMD is missing: lockbroker campaign [OPTION...] NAME DATA {CMD [ARG]... | -c LINE}.");
	assert_null(strstr(said, "hold"));
	refuses("lock", "NAME is missing");
	refuses("lock a", "CMD is missing: lockbroker lock [OPTION...] NAME {CMD [ARG]... | -c LINE}. Without a command, "
			  "`lockbroker hold");
	refuses("lock a --", "CMD is missing");
}

/* ---- the operators' socket ---- */

static bool is_for_operators(int argc, const char *command)
{
	char *words[] = { (char *)command, (char *)"name", (char *)"3", NULL };

	return operators_only(argc, words);
}

TEST(what_only_operators_may_ask_for_goes_to_their_socket)
{
	static const char *const theirs[] = { "FORCEUNLOCK", "revoke", "Reload", "CONFIG", "restart", "audit",
					      "access", "LOG", "accounts", "drain" };

	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++)
		assert_true(is_for_operators(1, theirs[i]));
	assert_false(is_for_operators(0, "DRAIN"));
	assert_false(is_for_operators(3, "LOCK"));
	assert_false(is_for_operators(3, "DRAINS"));
	/* Everybody may read what the limit is. */
	assert_true(is_for_operators(3, "limit"));
	assert_false(is_for_operators(2, "LIMIT"));
	assert_false(is_for_operators(1, "LIMIT"));
	assert_false(is_for_operators(3, "LOCKS"));
}

TEST(the_operators_socket_is_the_one_named_or_stands_beside_that_of_everybody)
{
	char folder[] = "/tmp/operators.XXXXXX", path[OPERATORS_PATH_MAX], beside[64], socket[64], named[64];

	assert_non_null(mkdtemp(folder));
	snprintf(beside, sizeof(beside), "%s/operator.sock", folder);
	snprintf(socket, sizeof(socket), "%s/socket", folder);
	snprintf(named, sizeof(named), "%s/named", folder);
	unsetenv("LOCKBROKER_OPERATOR_SOCKET");
	setenv("LOCKBROKER_SOCKET", socket, 1);
	assert_string_equal(operators_socket("/given", path), "/given");
	/* One that cannot be opened is left alone: then the daemon says what is not permitted. */
	assert_null(operators_socket(NULL, path));
	close(open(beside, O_CREAT | O_WRONLY, 0600));
	assert_string_equal(operators_socket(NULL, path), beside);
	setenv("LOCKBROKER_OPERATOR_SOCKET", "", 1);
	assert_string_equal(operators_socket(NULL, path), beside);
	setenv("LOCKBROKER_OPERATOR_SOCKET", named, 1);
	assert_null(operators_socket(NULL, path));
	close(open(named, O_CREAT | O_WRONLY, 0600));
	assert_string_equal(operators_socket(NULL, path), named);
	unsetenv("LOCKBROKER_OPERATOR_SOCKET");
	assert_int_equal(chdir(folder), 0);
	setenv("LOCKBROKER_SOCKET", "socket", 1);
	assert_string_equal(operators_socket(NULL, path), "operator.sock");
	assert_int_equal(chdir("/"), 0);
	unsetenv("LOCKBROKER_SOCKET");
	unlink(named);
	unlink(beside);
	rmdir(folder);
}

static const char *path_of(const char *name, struct socket_path *found)
{
	assert_true(socket_path_find(name, found));
	return found->text;
}

TEST(a_socket_is_a_path_or_has_a_name)
{
	char folder[] = "/tmp/runtime.XXXXXX", expected[64], beside[64], path[OPERATORS_PATH_MAX];
	struct socket_path found;

	assert_non_null(mkdtemp(folder));
	unsetenv("LOCKBROKER_SOCKET");
	assert_string_equal(path_of(NULL, &found), SOCKET_PATH_DEFAULT);
	assert_non_null(strstr(found.remedy, "--user"));
	assert_string_equal(path_of("", &found), SOCKET_PATH_DEFAULT);
	assert_string_equal(path_of("/given", &found), "/given");
	assert_null(strstr(found.remedy, "--user"));
	assert_string_equal(path_of("@emea", &found), "/run/lockbroker@emea/lockbroker.sock");
	assert_string_equal(path_of("@", &found), "@");
	assert_string_equal(path_of("@a/b", &found), "@a/b");
	setenv("XDG_RUNTIME_DIR", folder, 1);
	snprintf(expected, sizeof(expected), "%s/lockbroker/lockbroker.sock", folder);
	assert_string_equal(path_of("user", &found), expected);
	assert_non_null(strstr(found.remedy, "systemctl --user enable --now lockbrokerd.socket"));
	assert_string_equal(path_of("./user", &found), "./user");
	setenv("LOCKBROKER_SOCKET", "user", 1);
	assert_string_equal(path_of(NULL, &found), expected);
	snprintf(beside, sizeof(beside), "%s/lockbroker", folder);
	assert_int_equal(mkdir(beside, 0700), 0);
	snprintf(beside, sizeof(beside), "%s/lockbroker/operator.sock", folder);
	close(open(beside, O_CREAT | O_WRONLY, 0600));
	assert_string_equal(operators_socket(NULL, path), beside);
	/* One that others may write to is nobody's own. */
	assert_int_equal(chmod(folder, 0770), 0);
	assert_false(socket_path_find("user", &found));
	assert_non_null(strstr(found.text, folder));
	assert_string_equal(operators_socket("user", path), "user");
	unsetenv("LOCKBROKER_SOCKET");
	unsetenv("XDG_RUNTIME_DIR");
	unlink(beside);
	*strrchr(beside, '/') = '\0';
	rmdir(beside);
	rmdir(folder);
}

/* ---- progress ---- */

static const struct lb_reply *parsed(struct resp_replies *r, const char *text)
{
	size_t used;

	resp_replies_init(r, 1024, 65536);
	assert_int_equal(resp_read_reply(r, slice_of(text), &used), RESP_DONE);
	return (const struct lb_reply *)r->values;
}

TEST(progress_says_who_holds_it_and_where_we_stand)
{
	static const char holders[] = "*2\r\n%3\r\n+host\r\n+web-3\r\n+pid\r\n:4411\r\n+command\r\n+rebuild.sh\r\n"
				      "%1\r\n+host\r\n+web-4\r\n";
	static const char queue[] = "*2\r\n%3\r\n+client\r\n:0\r\n+pid\r\n:7\r\n+position\r\n:1\r\n"
				    "%3\r\n+client\r\n:5\r\n+pid\r\n:7\r\n+position\r\n:2\r\n";
	static const char named[] = "*1\r\n%4\r\n+host\r\n+web-3\r\n+pid\r\n:4411\r\n+command\r\n+lockbroker\r\n"
				    "+name\r\n+sleep\r\n";
	struct resp_replies r;
	char line[256];

	assert_string_equal(cli_progress_line("orders", 12900, NULL, 0, line, sizeof(line)), "waiting 12 s for orders");
	cli_progress_line("orders", 12000, parsed(&r, holders), 2, line, sizeof(line));
	assert_string_equal(line, "waiting 12 s for orders, held by web-3 pid 4411 rebuild.sh and 1 more, 2nd in line");
	cli_progress_line("orders", 12000, (const struct lb_reply *)r.values, 2, line, 20);
	assert_string_equal(line, "waiting 12 s for or");
	resp_replies_deinit(&r);
	/* What it runs is its name, where it has one. */
	cli_progress_line("orders", 0, parsed(&r, named), 0, line, sizeof(line));
	assert_string_equal(line, "waiting 0 s for orders, held by web-3 pid 4411 sleep");
	resp_replies_deinit(&r);
	assert_int_equal(cli_progress_place(parsed(&r, queue), 7), 2);
	assert_int_equal(cli_progress_place((const struct lb_reply *)r.values, 8), 0);
	assert_int_equal(cli_progress_place(NULL, 8), 0);
	resp_replies_deinit(&r);
}

TEST(progress_says_that_nothing_can_be_granted)
{
	static const char none[] = "# Session\r\nsession_state:none\r\nsession_why:never connected\r\nx:1\r\n";
	char why[128];

	assert_true(cli_progress_halted(slice_of(none), why, sizeof(why)));
	assert_string_equal(why, "there is no connection to ZooKeeper (never connected)");
	assert_true(cli_progress_halted(slice_of("# Session\r\nsession_state:lost"), why, sizeof(why)));
	assert_string_equal(why, "there is no connection to ZooKeeper ()");
	assert_false(cli_progress_halted(slice_of("# Session\r\nsession_state:safe\r\nsession_why:none"), why, sizeof(why)));
	assert_false(cli_progress_halted(slice_of(""), why, sizeof(why)));
}

/* That somebody has it, or is before us, is what one waits for. */
TEST(progress_tells_a_hindrance_from_a_holder)
{
	static const char *const others[] = {
		"%2\r\n+why\r\n+held by you\r\n+holders\r\n*1\r\n%0\r\n",
		"%3\r\n+why\r\n+x\r\n+hosts_before\r\n:1\r\n+holders\r\n*0\r\n",
		"%3\r\n+why\r\n+x\r\n+delegated\r\n:7\r\n+holders\r\n*0\r\n",
	};
	static const char refused[] = "%2\r\n+why\r\n+ZooKeeper refuses it\r\n+holders\r\n*0\r\n";
	struct resp_replies r;
	char why[128];

	assert_true(cli_progress_hindered(parsed(&r, refused), why, sizeof(why)));
	assert_string_equal(why, "ZooKeeper refuses it");
	resp_replies_deinit(&r);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_false(cli_progress_hindered(parsed(&r, others[i]), why, sizeof(why)));
		resp_replies_deinit(&r);
	}
	assert_false(cli_progress_hindered(NULL, why, sizeof(why)));
}

TEST(places_in_line_have_the_endings_of_their_numbers)
{
	static const struct {
		int place;
		const char *shown;
	} all[] = {
		{ 1, ", 1st in line" },     { 2, ", 2nd in line" },     { 3, ", 3rd in line" },     { 4, ", 4th in line" },
		{ 10, ", 10th in line" },   { 11, ", 11th in line" },   { 12, ", 12th in line" },   { 13, ", 13th in line" },
		{ 14, ", 14th in line" },   { 21, ", 21st in line" },   { 22, ", 22nd in line" },   { 23, ", 23rd in line" },
		{ 101, ", 101st in line" }, { 111, ", 111th in line" }, { 112, ", 112th in line" },
		{ 113, ", 113th in line" }, { 0, "" },
	};
	char line[64], expected[64];

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(expected, sizeof(expected), "waiting 1 s for a%s", all[i].shown);
		assert_string_equal(cli_progress_line("a", 1999, NULL, all[i].place, line, sizeof(line)), expected);
	}
}

/* ---- what was meant ---- */

TEST(an_option_that_is_nearly_one_leads_to_it)
{
	refuses("lock --wiat 5 a true", "lock has no option --wiat. Did you mean --wait? Try `lockbroker --help`.");
	refuses("lock --nonblok a true", "Did you mean --nonblock?");
	refuses("lock --shraed=1 a true", "Did you mean --shared?");
	refuses("sem --cont=1 a true", "Did you mean --count?");
	refuses("lock --cont=1 a true", "lock has no option --cont=1. Try");
	refuses("lock --nonsense a true", "lock has no option --nonsense. Try");
	refuses("lock --nb=1 a true", "--nb takes no value. Try");
}

static const char *nearest(const char *word, const char *candidates)
{
	static char text[256];
	struct cli_near near = { .word = word };

	snprintf(text, sizeof(text), "%s", candidates);
	for (char *candidate = strtok(text, " "); candidate; candidate = strtok(NULL, " "))
		cli_near_try(&near, candidate, candidate);
	return near.best ? near.best : "";
}

TEST(the_nearest_word_is_the_one_with_the_fewest_changes)
{
	assert_string_equal(nearest("lok", "log lock"), "log");
	assert_string_equal(nearest("lcok", "log lock"), "lock");
	assert_string_equal(nearest("hsots", "hosts hold"), "hosts");
	assert_string_equal(nearest("session", "server session"), "session");
	assert_string_equal(nearest("limits.user_shar", "limits.users limits.user_share"), "limits.user_share");
	assert_string_equal(nearest("x", "ls s"), "");
	assert_string_equal(nearest("nonsense", "sem observe hosts"), "");
	assert_string_equal(nearest("", "ls"), "");
	assert_string_equal(nearest("a123456789a123456789a123456789a123456789a123456789a123456789a1234", "a"), "");
}

/* ---- the tables ---- */

/* The option that the line gives, which ends behind it or its value; OPT_END: none. */
static enum cli_option_id given_by(const struct cli_command *command, const char *line)
{
	char text[128], value[] = "1", *argv[] = { text, strchr(strcpy(text, line), ' ') + 1, value, NULL };
	struct cli_words w = { .command = command };
	int id = 0;

	argv[1][-1] = '\0';
	if (cli_words_read(&w, 3, argv) >= 0)
		fail_msg("%s: not taken", line);
	while (id < OPT_END && !w.given[id])
		id++;
	return id;
}

TEST(a_letter_and_a_word_mean_one_thing_inside_a_command)
{
	for (size_t c = 0; c <= WORD_COUNT; c++)
		for (size_t i = 0; i < cli_option_count; i++)
			for (size_t k = 0; k < i; k++) {
				const struct cli_option *a = &cli_options[i], *b = &cli_options[k];

				if ((a->commands & b->commands) >> c & 1 && a->id != b->id) {
					assert_false(a->letter && a->letter == b->letter);
					assert_false(a->word && b->word && strcmp(a->word, b->word) == 0);
				}
			}
}

/*
 * Of the version before: all words, of which those of the verb counted, and an abbreviation was taken that only one of all
 * began with. What a script abbreviated is that option still.
 */
TEST(abbreviations_of_the_version_before_are_what_they_were)
{
	static const char *const words[] = { "shared",	 "exclusive", "nb",	"nonblock", "nonblocking", "wait",  "timeout",
					     "conflict-exit-code", "close",   "no-fork", "unlock",   "on-revoke",	  "lease", "count",
					     "help",	 "version",   "owner", "connect",  "min-hold",	  "splay", "verbose", "json" };
	enum { COUNT = sizeof(words) / sizeof(words[0]) };
	size_t tried = 0;

	for (size_t c = WORD_LOCK; c <= WORD_CAMPAIGN; c++)
		for (size_t i = 0; i < COUNT; i++) {
			const struct cli_option *option = cli_option_find(&cli_commands[c], 0, words[i], strlen(words[i]));

			/* --unlock was refused, and is. */
			for (size_t len = 1; option && option->id != OPT_UNLOCK && len < strlen(words[i]); len++) {
				char line[128];
				size_t others = 0;

				for (size_t k = 0; k < COUNT; k++) {
					const struct cli_option *other = cli_option_find(&cli_commands[c], 0, words[k],
											 strlen(words[k]));

					others += strncmp(words[k], words[i], len) == 0 && (!other || other->id != option->id);
				}
				if (others > 0)
					continue;
				snprintf(line, sizeof(line), "%s --%.*s", cli_commands[c].word, (int)len, words[i]);
				assert_int_equal(given_by(&cli_commands[c], line), option->id);
				tried++;
			}
		}
	assert_true(tried > 150);
}

TEST(an_option_that_help_shows_has_a_word)
{
	for (size_t i = 0; i < cli_option_count; i++)
		assert_true(!cli_options[i].about || cli_options[i].word);
}
