/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/journal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client-lib/cli/say.h"

/* ---- an entry ---- */

struct slice journal_field(const struct journal_entry *entry, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < entry->count; i++) {
		const struct journal_field *f = &entry->fields[i];
		const char *at = entry->text.data + f->at;

		if (f->name_len == len && memcmp(at, name, len) == 0)
			return (struct slice){ at + len, f->value_len };
	}
	return (struct slice){ "", 0 };
}

int64_t journal_number(const struct journal_entry *entry, const char *name)
{
	enum { DIGITS_MAX = 18 };
	struct slice text = journal_field(entry, name);
	int64_t number = 0;

	if (text.len == 0 || text.len > DIGITS_MAX)
		return -1;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return -1;
		number = number * 10 + (text.data[i] - '0');
	}
	return number;
}

struct journal_entry journal_entry_take(struct journal_entry *entry)
{
	struct journal_entry taken = *entry;

	*entry = (struct journal_entry){ 0 };
	bytes_fit(&taken.text);
	return taken;
}

void journal_entry_free(struct journal_entry *entry)
{
	bytes_free(&entry->text);
	free(entry->fields);
	*entry = (struct journal_entry){ 0 };
}

static void add_field(struct journal_entry *entry, struct slice name, struct slice value)
{
	if (entry->count == entry->cap) {
		entry->cap = entry->cap ? 2 * entry->cap : 32;
		entry->fields = realloc(entry->fields, entry->cap * sizeof(*entry->fields));
		if (!entry->fields)
			abort();
	}
	entry->fields[entry->count++] = (struct journal_field){ entry->text.len, name.len, value.len };
	bytes_slice(&entry->text, name);
	bytes_slice(&entry->text, value);
}

enum journal_result journal_parse(struct journal_entry *entry, struct slice text, size_t *used)
{
	const char *at = text.data, *end = text.data + text.len;
	uint64_t len;

	entry->count = 0;
	bytes_clear(&entry->text);
	while (at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at)), *equals;
		struct slice name = { at, line ? (size_t)(line - at) : 0 }, value;

		if (!line)
			return end - at > JOURNAL_VALUE_MAX ? JOURNAL_BROKEN : JOURNAL_MORE;
		if (name.len == 0 && entry->count > 0) {
			*used = (size_t)(line + 1 - text.data);
			return JOURNAL_ENTRY;
		}
		if (name.len == 0)
			return JOURNAL_BROKEN;
		equals = memchr(at, '=', name.len);
		if (equals) {
			name.len = (size_t)(equals - at);
			value = (struct slice){ equals + 1, (size_t)(line - equals - 1) };
			at = line + 1;
		} else {
			if ((size_t)(end - line) < 1 + sizeof(len))
				return JOURNAL_MORE;
			memcpy(&len, line + 1, sizeof(len));
			if (le64toh(len) > JOURNAL_VALUE_MAX)
				return JOURNAL_BROKEN;
			value = (struct slice){ line + 1 + sizeof(len), (size_t)le64toh(len) };
			if ((size_t)(end - value.data) <= value.len)
				return JOURNAL_MORE;
			if (value.data[value.len] != '\n')
				return JOURNAL_BROKEN;
			at = value.data + value.len + 1;
		}
		add_field(entry, name, value);
	}
	return JOURNAL_MORE;
}

/* ---- journalctl ---- */

/* Says the first line that it wrote about an error or a warning. False: there is none. */
static bool say_said(int said)
{
	char text[1024];
	ssize_t n = pread(said, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (*text)
		cli_say("journalctl: %s", text);
	return *text;
}

static int failed(int said, int status)
{
	if (say_said(said))
		return CLI_OSERR;
	if (WIFSIGNALED(status))
		cli_say("journalctl was ended by signal %d.", WTERMSIG(status));
	else
		cli_say("journalctl failed with status %d.", WEXITSTATUS(status));
	return CLI_OSERR;
}

/* Its output goes to `out`, its messages to `said`. 0, or an error number. */
static int start(char *const *words, int out, int said, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, usual;
	int error;

	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGTERM); /* which ends it early */
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &usual);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
	error = posix_spawnp(ret, words[0], &actions, &attributes, words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

enum ended { ENDED, ENDED_EARLY /* `take` has enough */, ENDED_BROKEN };

static enum ended read_entries(int from, bool (*take)(void *context, struct journal_entry *entry), void *context)
{
	enum { CHUNK = 64 * 1024 };
	struct journal_entry entry = { 0 };
	enum ended ended = ENDED;
	struct bytes text = { 0 };
	size_t at = 0, used;
	ssize_t n = 0;

	bytes_reserve(&text, CHUNK);
	for (;;) {
		enum journal_result r = journal_parse(&entry, (struct slice){ text.data + at, text.len - at }, &used);

		if (r == JOURNAL_BROKEN)
			ended = ENDED_BROKEN;
		else if (r == JOURNAL_ENTRY && !take(context, &entry))
			ended = ENDED_EARLY;
		if (ended != ENDED)
			break;
		if (r == JOURNAL_ENTRY) {
			at += used;
			continue;
		}
		memmove(text.data, text.data + at, text.len - at);
		text.len -= at;
		at = 0;
		bytes_reserve(&text, CHUNK);
		do
			n = read(from, text.data + text.len, CHUNK);
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			break;
		text.len += (size_t)n;
	}
	if (ended == ENDED && (n < 0 || text.len > 0))
		ended = ENDED_BROKEN;
	journal_entry_free(&entry);
	bytes_free(&text);
	return ended;
}

/* How it went, after its end. */
static int status_of(pid_t pid, enum ended ended, int said)
{
	int status = 0;

	if (ended != ENDED)
		kill(pid, SIGTERM);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (ended == ENDED_EARLY)
		return 0;
	if (ended == ENDED && status != 0)
		return failed(said, status);
	if (ended == ENDED) {
		say_said(said); /* of a file that it could not read, for example */
		return 0;
	}
	cli_say("The output of journalctl is no export of a journal.");
	return CLI_OSERR;
}

int journal_read(char *const *words, bool (*take)(void *context, struct journal_entry *entry), void *context)
{
	int ends[2], said = memfd_create("said", MFD_CLOEXEC), status = CLI_NOT_FOUND, error;
	enum ended ended;
	pid_t pid;

	if (said < 0 || pipe2(ends, O_CLOEXEC) < 0) {
		cli_say("Cannot run journalctl: %s.", strerror(errno));
		if (said >= 0)
			close(said);
		return CLI_OSERR;
	}
	error = start(words, ends[1], said, &pid);
	close(ends[1]);
	if (error == 0) {
		ended = read_entries(ends[0], take, context);
		status = status_of(pid, ended, said);
	} else {
		cli_say("Cannot run journalctl: %s. It comes with systemd, whose journal has the history.",
			strerror(error));
	}
	close(ends[0]);
	close(said);
	return status;
}
