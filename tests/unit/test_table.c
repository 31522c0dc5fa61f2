/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands (command.c): what each one takes, and that each one does something; only the top is not linked. */
#include "lock_fixture.h"

#include <stdio.h>

#include "core/client/reply.h"
#include "core/command/command.h"
#include "core/hosts/hosts.h"
#include "core/hosts/release.h"
#include "core/kind/kinds.h"

/* How each command may be said, with all that it needs, and the options of the table that it then takes. */
static const struct {
	const char *line, *options;
} said[COMMAND_COUNT] = {
	[COMMAND_LOCK] = { "LOCK a", "SHARED WAIT LEASE DATA REENTER SLOT" },
	[COMMAND_UNLOCK] = { "UNLOCK a", "TOKEN LAZY" },
	[COMMAND_MLOCK] = { "MLOCK 1 a", "SHARED WAIT LEASE REENTER" },
	[COMMAND_MUNLOCK] = { "MUNLOCK 1 a", "" },
	[COMMAND_DOWNGRADE] = { "DOWNGRADE a", "" },
	[COMMAND_RENEW] = { "RENEW a 5", "TOKEN" },
	[COMMAND_ENQUEUE] = { "ENQUEUE a", "SHARED WAIT LEASE DATA REENTER" },
	[COMMAND_CANCEL] = { "CANCEL a", "" },
	[COMMAND_ACQUIRE] = { "ACQUIRE a LIMIT 2", "COUNT WAIT LEASE" },
	[COMMAND_RELEASE] = { "RELEASE a", "COUNT" },
	[COMMAND_LIMIT] = { "LIMIT a 5", "" },
	[COMMAND_VALID] = { "VALID a", "TOKEN" },
	[COMMAND_CAMPAIGN] = { "CAMPAIGN a DATA text", "WAIT ENQUEUE" },
	[COMMAND_RESIGN] = { "RESIGN a", "" },
	[COMMAND_LEADER] = { "LEADER a", "" },
	[COMMAND_OBSERVE] = { "OBSERVE a", "" },
	[COMMAND_UNOBSERVE] = { "UNOBSERVE a", "" },
	[COMMAND_SET] = { "SET a v NX PX 5", "" },
	[COMMAND_SETNX] = { "SETNX a v", "" },
	[COMMAND_GET] = { "GET a", "" },
	[COMMAND_EXISTS] = { "EXISTS a", "" },
	[COMMAND_TTL] = { "TTL a", "" },
	[COMMAND_PTTL] = { "PTTL a", "" },
	[COMMAND_DEL] = { "DEL a", "" },
	[COMMAND_UNLINK] = { "UNLINK a", "" },
	[COMMAND_DELIFEQ] = { "DELIFEQ a v", "" },
	[COMMAND_DELEX] = { "DELEX a IFEQ v", "" },
	[COMMAND_EXPIRE] = { "EXPIRE a 5", "" },
	[COMMAND_PEXPIRE] = { "PEXPIRE a 5", "" },
	[COMMAND_TOKEN] = { "TOKEN a v", "" },
	[COMMAND_EVAL] = { "EVAL x 1 a v", "" },
	[COMMAND_EVALSHA] = { "EVALSHA x 1 a v", "" },
	[COMMAND_SCRIPT] = { "SCRIPT EXISTS x", "" },
	[COMMAND_HOLDERS] = { "HOLDERS a KNOWN", "" },
	[COMMAND_QUEUE] = { "QUEUE a", "" },
	[COMMAND_WHY] = { "WHY a", "" },
	[COMMAND_REVOKE] = { "REVOKE a reason", "" },
	[COMMAND_FORCEUNLOCK] = { "FORCEUNLOCK a", "" },
	[COMMAND_HOSTS] = { "HOSTS", "" },
	[COMMAND_LOCKS] = { "LOCKS * ALL", "AFTER COUNT" },
	[COMMAND_EVENTS] = { "EVENTS", "WAIT" },
	[COMMAND_AUDIT] = { "AUDIT", "" },
	[COMMAND_DELEGATE] = { "DELEGATE", "" },
	[COMMAND_RESTART] = { "RESTART", "" },
	[COMMAND_RELOAD] = { "RELOAD", "" },
	[COMMAND_CONFIG] = { "CONFIG GET a", "" },
	[COMMAND_ACCOUNTS] = { "ACCOUNTS", "" },
	[COMMAND_ACCESS] = { "ACCESS 1000 a", "" },
	[COMMAND_LOG] = { "LOG", "" },
	[COMMAND_DRAIN] = { "DRAIN STATE", "" },
	[COMMAND_HELLO] = { "HELLO 3", "" },
	[COMMAND_PING] = { "PING", "" },
	[COMMAND_ECHO] = { "ECHO text", "" },
	[COMMAND_SELECT] = { "SELECT 0", "" },
	[COMMAND_INFO] = { "INFO", "" },
	[COMMAND_METRICS] = { "METRICS", "" },
	[COMMAND_CLIENT] = { "CLIENT ID", "" },
	[COMMAND_COMMAND] = { "COMMAND COUNT", "" },
	[COMMAND_RESET] = { "RESET", "" },
	[COMMAND_QUIT] = { "QUIT", "" },
};

static const char *const options[] = {
	"SHARED", "WAIT 5", "LEASE 5", "DATA text", "REENTER", "TOKEN 5", "LAZY", "COUNT 1", "LIMIT 2", "ENQUEUE",
	"ALL",    "AFTER a", "SLOT 1",
};

static struct fixture *f;
static struct hosts hosts;
static struct client *c;

static int set_up(void **state)
{
	f = fixture_new(kind_rules);
	f->conf.version = f->conf.operator_socket = f->conf.session_page = f->conf.session_page_id = f->conf.boot_id = "";
	f->conf.limits.output_bytes = 1000000;
	hosts = (struct hosts){ .env = &f->env, .ensemble = &f->ensemble, .locks = &f->locks };
	hosts_init(&hosts);
	c = &f->clients[0];
	c->privileged = true;
	return 0;
}

static int tear_down(void **state)
{
	struct directory *d;
	struct lock *lock;

	release_client(&hosts, c);
	hosts_deinit(&hosts);
	TAILQ_FOREACH(lock, &f->locks.used, link)
		LOCK_DIRECTORIES(d, lock) {
			claim_free_all(d);
			d->operations = 0;
		}
	fixture_free(f);
	return 0;
}

/* What is answered to these words, at once or when all is settled; "": it waits. */
static const char *answer_to(const char *line)
{
	struct slice argv[100];
	size_t argc = 0, replies = 0;

	for (; *line; line += strspn(line, " ")) {
		argv[argc] = (struct slice){ line, strcspn(line, " ") };
		line += argv[argc++].len;
	}
	effects_clear(&f->out);
	bytes_clear(&f->said);
	c->asking = true;
	command_handle(&hosts, c, argc, argv);
	if (c->answered)
		reply_settled(c);
	for (size_t i = 0; i < f->out.count; i++)
		if (f->out.list[i].type == EFFECT_REPLY) {
			bytes_slice(&f->said, effects_slice(&f->out, f->out.list[i].text));
			replies++;
		}
	/* One, and whoever has none still asks. */
	assert_int_equal(replies, c->asking ? 0 : 1);
	bytes_char(&f->said, '\0');
	return f->said.data;
}

/* To a client of its own. */
static bool begins(const char *line, const char *error)
{
	bool so;

	set_up(NULL);
	so = strncmp(answer_to(line), error, strlen(error)) == 0;
	tear_down(NULL);
	return so;
}

static bool is_misunderstood(const char *line)
{
	return begins(line, "-ERR syntax error") || begins(line, "-ERR wrong number") || begins(line, "-ERR unknown");
}

TEST_WITH(each_command_answers_or_waits, NULL, NULL)
{
	for (int i = 0; i < COMMAND_COUNT; i++) {
		assert_non_null(said[i].line);
		if (is_misunderstood(said[i].line))
			fail_msg("%s", said[i].line);
	}
}

/* Of those that take no more words, and of those that have their own, neither. */
TEST_WITH(each_command_takes_its_options_and_no_other, NULL, NULL)
{
	for (int i = 0; i < COMMAND_COUNT; i++) {
		bool own_words = i == COMMAND_CLIENT || i == COMMAND_INFO || i == COMMAND_COMMAND || i == COMMAND_PING ||
				 i == COMMAND_CONFIG || i == COMMAND_HELLO || i == COMMAND_EXISTS ||
				 i == COMMAND_DEL || i == COMMAND_UNLINK || i == COMMAND_EVAL || i == COMMAND_EVALSHA ||
				 i == COMMAND_SCRIPT;

		for (size_t j = 0; j < sizeof(options) / sizeof(options[0]) && !own_words; j++) {
			char line[64], word[16];

			snprintf(word, sizeof(word), "%.*s", (int)strcspn(options[j], " "), options[j]);
			snprintf(line, sizeof(line), "%s %s", said[i].line, options[j]);
			if (is_misunderstood(line) == (strstr(said[i].options, word) != NULL))
				fail_msg("%s", line);
		}
	}
}

TEST_WITH(an_option_is_given_once_and_with_its_value, NULL, NULL)
{
	assert_true(is_misunderstood("LOCK a WAIT 5 WAIT 5"));
	assert_true(is_misunderstood("LOCK a SHARED SHARED"));
	assert_true(is_misunderstood("LOCK a WAIT"));
	assert_false(is_misunderstood("LOCK a wait 5 lease 5 shared reenter data text"));
}

TEST_WITH(a_command_that_names_a_lock_refuses_a_bad_name, NULL, NULL)
{
	for (int i = 0; i < COMMAND_COUNT; i++) {
		const char *rest = said[i].line + command_table[i].len;
		bool named = strncmp(rest, " a", 2) == 0;
		char line[64];

		snprintf(line, sizeof(line), "%s ..%s", command_table[i].word, named ? rest + 2 : "");
		if (begins(line, "-BADNAME") != named)
			fail_msg("%s", line);
	}
}

TEST_WITH(words_are_counted_first, NULL, NULL)
{
	for (int i = 0; i < COMMAND_COUNT; i++) {
		const struct command_spec *spec = &command_table[i];
		struct bytes line = { 0 };

		for (int words = 1; words < spec->args_min; words++)
			bytes_text(&line, words == 1 ? spec->word : " .."); /* one too few */
		bytes_char(&line, '\0');
		assert_true(line.len == 1 || begins(line.data, "-ERR wrong number of arguments for '"));
		bytes_clear(&line);
		bytes_text(&line, spec->word);
		for (int words = 1; words <= spec->args_max; words++)
			bytes_text(&line, " ..");
		bytes_char(&line, '\0');
		assert_true(spec->args_max < 0 || begins(line.data, "-ERR wrong number of arguments for '"));
		bytes_free(&line);
	}
}

TEST_WITH(a_command_that_does_not_exist_is_named, NULL, NULL)
{
	assert_true(begins("NOTHING", "-ERR unknown command 'NOTHING'\r\n"));
	assert_true(begins("lock", "-ERR wrong number of arguments for 'lock' command; "));
}

TEST_WITH(the_latest_command_is_remembered, NULL, NULL)
{
	set_up(NULL);
	answer_to("ping");
	assert_int_equal(c->last_command, COMMAND_PING);
	answer_to("NOTHING");
	assert_int_equal(c->last_command, COMMAND_COUNT);
	tear_down(NULL);
}
