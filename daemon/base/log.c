/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/flight.h"
#include "base/journal.h"
#include "base/log_catalog.h"

enum {
	LOG_LINE_MAX = 4096,     /* a pipe takes it whole */
	LOG_SENTENCE_MAX = FLIGHT_TEXT_MAX, /* what is longer is cut */
};

const char *const log_level_words[] = { "error", "warning", "info", "debug", NULL };

static const char *const ids[LOG_EVENT_COUNT] = {
#define X(name, id) [LOG_EVENT_##name] = (id),
	LOG_CATALOG(X)
#undef X
};

static struct {
	_Atomic(enum log_level) level;
	enum log_form form;
	unsigned int unread; /* lines that could not be written to the log */
	struct flight_ring *flight;
	pthread_t flight_thread;
} settings = { .level = LOG_LEVEL_INFO, .form = LOG_FORM_PLAIN };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the buckets */
static struct log_buckets buckets;

void log_setup(enum log_level level, enum log_form form)
{
	settings.level = level;
	settings.form = form;
	if (form == LOG_FORM_JOURNAL && !journal_is_open() && access(JOURNAL_SOCKET, W_OK) == 0 &&
	    journal_open(JOURNAL_SOCKET) == 0)
		atexit(journal_close);
}

enum log_form log_form_detect(void)
{
	return journal_is_stderr() ? LOG_FORM_JOURNAL : LOG_FORM_PLAIN;
}

enum log_form log_form(void)
{
	return settings.form;
}

void log_set_level(enum log_level level)
{
	settings.level = level;
}

enum log_level log_level(void)
{
	return settings.level;
}

static size_t prefix_human(char *line, size_t size, enum log_level level)
{
	struct timespec ts;
	struct tm tm;
	char date[32] = "";

	clock_gettime(CLOCK_REALTIME, &ts);
	if (localtime_r(&ts.tv_sec, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	return (size_t)snprintf(line, size, "%s.%03ld %s: ", date, ts.tv_nsec / 1000000, log_level_words[level]);
}

/* As syslog(3) has it. */
static int priority_of(enum log_level level)
{
	static const int priorities[] = { 3, 4, 6, 7 };

	return priorities[level];
}

static size_t prefix(char *line, size_t size, enum log_level level)
{
	switch (settings.form) {
	case LOG_FORM_PLAIN:
		return (size_t)snprintf(line, size, "%s: ", log_level_words[level]);
	case LOG_FORM_JOURNAL:
		return (size_t)snprintf(line, size, "<%d>", priority_of(level));
	case LOG_FORM_HUMAN:
		return prefix_human(line, size, level);
	}
	return 0;
}

static void write_line(const char *line, size_t len)
{
	/* The service cannot mend a log that cannot be written. */
	ssize_t written = write(STDERR_FILENO, line, len);

	(void)written;
}

/* A log that nobody reads must not stop the locks: lines are left out, and counted. */
static void put_line(const char *line, size_t len)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	char unread[160];
	size_t start;

	if (poll(&p, 1, 0) == 0) {
		settings.unread++;
		return;
	}
	if (settings.unread) {
		start = prefix(unread, sizeof(unread), LOG_LEVEL_WARNING);
		snprintf(unread + start, sizeof(unread) - start,
			 "lines of the log were left out, because nobody took them: %u  event=unread lines=%u\n",
			 settings.unread, settings.unread);
		settings.unread = 0;
		write_line(unread, strlen(unread));
		if (poll(&p, 1, 0) == 0)
			return;
	}
	write_line(line, len);
}

/* Returns the end of what was written. */
static char *put_sentence(char *to, struct slice sentence)
{
	const char *begin = to, *end = to + LOG_SENTENCE_MAX;
	size_t len = sentence.len;

	while (len > 0 && strchr(" \n\r", sentence.data[len - 1]))
		len--;
	for (size_t i = 0; i < len && to < end; i++) {
		char c = sentence.data[i];

		if (c != ' ' || (to > begin && to[-1] != ' '))
			*to++ = c < ' ' || c > '~' ? '?' : c;
	}
	return to;
}

/* The length of the fields that fit, as a whole: a quote in a value stands behind a backslash. */
static size_t fitting(struct slice fields, size_t room)
{
	bool quoted = false;
	size_t fits = 0;

	if (fields.len <= room)
		return fields.len;
	for (size_t i = 0; i <= room; i++) {
		char c = fields.data[i];

		if (c == ' ' && !quoted)
			fits = i;
		else if (c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
	}
	return fits;
}

static void put(enum log_level level, enum log_event event, const struct log_account *account, struct slice sentence,
		struct slice fields)
{
	bool is_entry = journal_is_open();
	char line[LOG_LINE_MAX], *at = is_entry ? line : line + prefix(line, sizeof(line), level);
	struct bytes all = { 0 };
	size_t fits;

	at = put_sentence(at, sentence);
	bytes_format(&all, "event=%s", log_event_word(event));
	if (account)
		bytes_format(&all, " uid=%d", account->uid);
	if (account && account->unit.len)
		bytes_format(&all, " unit=%v", account->unit);
	if (fields.len) {
		bytes_char(&all, ' ');
		bytes_slice(&all, fields);
	}
	*at++ = ' ';
	*at++ = ' ';
	fits = fitting(bytes_view(&all), (size_t)(line + sizeof(line) - 1 - at));
	memcpy(at, all.data, fits);
	at += fits;
	if (is_entry) {
		journal_line(level <= LOG_LEVEL_WARNING ? ids[event] : NULL, priority_of(level),
			     (struct slice){ line, (size_t)(at - line) }, bytes_view(&all),
			     log_is_of_hold(event));
	} else {
		*at++ = '\n';
		put_line(line, (size_t)(at - line));
	}
	bytes_free(&all);
}

/* ---- what is held back ---- */

static bool passes(enum log_event event, const struct log_account *account)
{
	bool passes;

	pthread_mutex_lock(&mutex);
	passes = log_buckets_pass(&buckets, event, account, clock_now_ns());
	pthread_mutex_unlock(&mutex);
	return passes;
}

bool log_holds_back(void)
{
	return buckets.holding > 0;
}

static bool take_held(bool all, struct log_bucket *ret)
{
	bool taken;

	pthread_mutex_lock(&mutex);
	taken = log_buckets_take(&buckets, all, clock_now_ns(), ret);
	pthread_mutex_unlock(&mutex);
	return taken;
}

void log_tell_held(bool all)
{
	struct bytes sentence = { 0 }, fields = { 0 };
	struct log_account account;
	struct log_bucket held;

	while (take_held(all, &held)) {
		bytes_clear(&sentence);
		bytes_clear(&fields);
		account = (struct log_account){ held.uid, { held.unit, held.unit_len } };
		bytes_format(&sentence, "held back %d line%s of the event %s", held.held, held.held == 1 ? "" : "s",
			     log_event_word(held.event));
		bytes_format(&fields, "of=%s lines=%d", log_event_word(held.event), held.held);
		put(LOG_LEVEL_WARNING, LOG_EVENT_held_back, held.named ? &account : NULL, bytes_view(&sentence),
		    bytes_view(&fields));
	}
	bytes_free(&sentence);
	bytes_free(&fields);
}

int64_t log_due_ns(void)
{
	return journal_waits() ? JOURNAL_RETRY_NS : buckets.holding > 0 ? LOG_TELL_NS : 0;
}

void log_go_on(void)
{
	if (journal_waits())
		journal_go_on();
	log_tell_held(false);
}

void log_exit(int status)
{
	journal_close();
	_exit(status);
}

/* ---- lines ---- */

void log_record(struct flight_ring *flight)
{
	settings.flight = flight;
	settings.flight_thread = pthread_self();
}

void log_text(enum log_level level, enum log_event event, const struct log_account *account, struct slice sentence,
	      struct slice fields)
{
	if (settings.flight && pthread_equal(settings.flight_thread, pthread_self()))
		flight_note(settings.flight, FLIGHT_log, clock_now_ns(), event, 0, sentence);
	if (level > settings.level)
		return;
	if (log_holds_back())
		log_tell_held(false);
	if (passes(event, account))
		put(level, event, account, sentence, fields);
}

void log_caused(enum log_level level, enum log_event event, const struct log_account *account, const char *fields,
		const struct bytes_value *values, size_t count, const char *format, ...)
{
	char sentence[LOG_SENTENCE_MAX + 1];
	struct bytes text = { 0 };
	va_list args;

	if (level > settings.level && !settings.flight)
		return;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	bytes_format_values(&text, fields, values, count);
	log_text(level, event, account, slice_of(sentence), bytes_view(&text));
	bytes_free(&text);
}
