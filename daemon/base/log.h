/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line per message on stderr, written by one write(2) so that threads do not mix. Control characters
 * become '?', so that a message stays one line whatever a peer put into it. The level and the form are the only state;
 * the form is set once, before there are threads.
 */
#pragma once

#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum log_form {
	LOG_FORM_PLAIN,   /* "warning: text" */
	LOG_FORM_JOURNAL, /* "<4>text", as in sd-daemon(3) */
	LOG_FORM_HUMAN,   /* "2030-01-31 12:00:00.000 warning: text" */
};

/* Passes a few lines of a kind in a while and counts the rest. Zero-initialised is valid. */
struct log_rate {
	int64_t window_ns; /* 0: ten seconds */
	int64_t since_ns;
	unsigned int lines, left_out;
};

void log_setup(enum log_level level, enum log_form form);
/* JOURNAL if stderr is the journal (JOURNAL_STREAM is set), otherwise PLAIN. */
enum log_form log_form_detect(void);
/* Other threads may log meanwhile. */
void log_set_level(enum log_level level);
enum log_level log_level(void);
const char *log_level_word(enum log_level level);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Like log_line(); when the next line passes, another one says how many were left out. */
void log_rated(struct log_rate *rate, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
