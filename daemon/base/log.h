/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line for each event on stderr, written by one write(2) so that threads do not mix, or one entry of systemd's
 * journal, where stderr leads there (journal.h). A line is a sentence for people, two blanks, and fields for tools:
 *
 *     somebody deleted our znode /t/a/__WRIT__0000000007  event=znode_deleted path=/t/a znode=__WRIT__0000000007
 *
 * The first field is the event (log_event.h). A value is bare, or in double quotes with \ before " and \, and \xHH for a
 * byte that is not printable ASCII; of a text of somebody's at most BYTES_SHOWN_MAX bytes are shown. The first two blanks
 * of a line end its sentence: in a sentence several blanks become one, and a byte that is not printable ASCII becomes '?',
 * so that no text of somebody's can look like a field or like another line.
 *
 * Each kind of event, and each account that causes such events, has a bucket (log_bucket.h): lines beyond it are held back,
 * and one line says later how many they were. Below the level of a line, it goes into the flight recorder only.
 */
#pragma once

#include <stdbool.h>

#include "base/log_bucket.h"
#include "base/log_event.h"
#include "protocol/bytes_format.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum log_form {
	LOG_FORM_PLAIN,   /* "warning: text" */
	LOG_FORM_JOURNAL, /* an entry with fields; where there is no socket of the journal "<4>text", as in sd-daemon(3) */
	LOG_FORM_HUMAN,   /* "2030-01-31 12:00:00.000 warning: text" */
};

struct flight_ring;

void log_setup(enum log_level level, enum log_form form);
/* JOURNAL if stderr is the journal (JOURNAL_STREAM names it), otherwise PLAIN. */
enum log_form log_form_detect(void);
enum log_form log_form(void); /* as it was set up */
/* Other threads may log at the same time. */
void log_set_level(enum log_level level);
enum log_level log_level(void);
extern const char *const log_level_words[]; /* by level, and then NULL */
/* The lines of this thread are recorded there, too, whatever their level. NULL: nowhere. */
void log_record(struct flight_ring *flight);

/* The fields of a line: `format` is "key=%v other=%d", as bytes_format() takes it. */
#define LOG_FIELDS(format, ...) (format), BYTES_ARGUMENTS(__VA_ARGS__)
#define LOG_NO_FIELDS "", NULL, 0

/*
 * Logs a line: LOG_FIELDS() or LOG_NO_FIELDS, then the sentence as printf() takes it. `account`: it has caused the line, and
 * its fields uid= and unit= come before the others; NULL: none has.
 */
void log_caused(enum log_level level, enum log_event event, const struct log_account *account, const char *fields,
		const struct bytes_value *values, size_t count, const char *format, ...)
	__attribute__((format(printf, 7, 8)));
#define log_event(level, event, ...) log_caused(level, event, NULL, __VA_ARGS__)
/* The same for complete texts. */
void log_text(enum log_level level, enum log_event event, const struct log_account *account, struct slice sentence,
	      struct slice fields);
/* Something is held back, and has to be said when LOG_TELL_NS have passed. */
bool log_holds_back(void);
/* Logs how many lines the buckets held back whose time has come; `all`: all buckets. */
void log_tell_held(bool all);
/* In so many nanoseconds the log has something to do; 0: nothing. Then call log_go_on(). */
int64_t log_due_ns(void);
void log_go_on(void);
/* Gives the log the lines that still wait, then calls _exit(2). */
void log_exit(int status) __attribute__((noreturn));

#define log_error(event, ...) log_event(LOG_LEVEL_ERROR, LOG_EVENT_##event, __VA_ARGS__)
#define log_warning(event, ...) log_event(LOG_LEVEL_WARNING, LOG_EVENT_##event, __VA_ARGS__)
#define log_info(event, ...) log_event(LOG_LEVEL_INFO, LOG_EVENT_##event, __VA_ARGS__)
#define log_debug(event, ...) log_event(LOG_LEVEL_DEBUG, LOG_EVENT_##event, __VA_ARGS__)
