/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	LOG_LINE_MAX = 4096, /* room for the longest lock name, quoted; and a pipe takes it whole */
	LOG_RATE_LINES = 5,  /* of one kind ... */
};
#define LOG_RATE_NS (10 * CLOCK_NS_PER_S) /* ... in this long */

static struct {
	_Atomic(enum log_level) level;
	enum log_form form;
	unsigned int left_out; /* lines that could not be written to the log */
} settings = { LOG_LEVEL_INFO, LOG_FORM_PLAIN, 0 };

void log_setup(enum log_level level, enum log_form form)
{
	settings.level = level;
	settings.form = form;
}

enum log_form log_form_detect(void)
{
	return getenv("JOURNAL_STREAM") ? LOG_FORM_JOURNAL : LOG_FORM_PLAIN;
}

void log_set_level(enum log_level level)
{
	settings.level = level;
}

enum log_level log_level(void)
{
	return settings.level;
}

const char *log_level_word(enum log_level level)
{
	static const char *const words[] = { "error", "warning", "info", "debug" };

	return words[level];
}

static size_t prefix_human(char *line, size_t size, enum log_level level)
{
	struct timespec ts;
	struct tm tm;
	char date[32] = "";

	clock_gettime(CLOCK_REALTIME, &ts);
	if (localtime_r(&ts.tv_sec, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	return (size_t)snprintf(line, size, "%s.%03ld %s: ", date, ts.tv_nsec / 1000000, log_level_word(level));
}

static size_t prefix(char *line, size_t size, enum log_level level)
{
	static const int journal[] = { 3, 4, 6, 7 };

	switch (settings.form) {
	case LOG_FORM_PLAIN:
		return (size_t)snprintf(line, size, "%s: ", log_level_word(level));
	case LOG_FORM_JOURNAL:
		return (size_t)snprintf(line, size, "<%d>", journal[level]);
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
	char left_out[64];

	if (poll(&p, 1, 0) == 0) {
		settings.left_out++;
		return;
	}
	if (settings.left_out) {
		snprintf(left_out, sizeof(left_out), "(%u lines of the log were left out)\n", settings.left_out);
		settings.left_out = 0;
		write_line(left_out, strlen(left_out));
		if (poll(&p, 1, 0) == 0)
			return;
	}
	write_line(line, len);
}

static void put(enum log_level level, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static void put(enum log_level level, const char *format, va_list args)
{
	char line[LOG_LINE_MAX];
	size_t start, len, i;

	start = prefix(line, sizeof(line), level);
	vsnprintf(line + start, sizeof(line) - start - 1, format, args);
	len = start + strlen(line + start);
	while (len > start && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		len--;
	for (i = start; i < len; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';
	put_line(line, len);
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list args;

	if (level > settings.level)
		return;
	va_start(args, format);
	put(level, format, args);
	va_end(args);
}

static bool rate_passes(struct log_rate *rate, enum log_level level)
{
	int64_t now_ns = clock_now_ns();

	if (rate->since_ns == 0 || now_ns - rate->since_ns >= (rate->window_ns ? rate->window_ns : LOG_RATE_NS)) {
		if (rate->left_out)
			log_line(level, "(left out %u more lines of this kind)", rate->left_out);
		*rate = (struct log_rate){ .since_ns = now_ns, .window_ns = rate->window_ns };
	}
	if (rate->lines >= LOG_RATE_LINES) {
		rate->left_out++;
		return false;
	}
	rate->lines++;
	return true;
}

void log_rated(struct log_rate *rate, enum log_level level, const char *format, ...)
{
	va_list args;

	if (level > settings.level || !rate_passes(rate, level))
		return;
	va_start(args, format);
	put(level, format, args);
	va_end(args);
}
