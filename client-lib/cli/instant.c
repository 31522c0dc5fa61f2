/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/instant.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	MS_PER_S = 1000,
	MS_PER_MINUTE = 60 * MS_PER_S,
	MS_PER_HOUR = 60 * MS_PER_MINUTE,
	MS_PER_DAY = 24 * MS_PER_HOUR
};
/* Beyond it the years have five digits. */
static const int64_t INSTANT_MAX_MS = INT64_C(253402300799999);

/* Takes that many digits off it. -1: there are fewer, or more than that. */
static int64_t digits(const char **at, int least, int most)
{
	int64_t number = 0;
	int count = 0;

	for (; count < most && isdigit((unsigned char)**at); count++)
		number = number * 10 + (*(*at)++ - '0');
	return count < least || isdigit((unsigned char)**at) ? -1 : number;
}

static bool take(const char **at, char c)
{
	if (**at != c)
		return false;
	(*at)++;
	return true;
}

/* ".25" is 250: milliseconds. */
static bool fraction(const char **at, int64_t *ret)
{
	int64_t unit = MS_PER_S / 10;

	if (!take(at, '.'))
		return false;
	for (*ret = 0; isdigit((unsigned char)**at); (*at)++, unit /= 10)
		*ret += unit * (**at - '0');
	return (*at)[-1] != '.';
}

/* "-1h30m" */
static bool read_ago(const char *at, int64_t *ret)
{
	static const struct {
		char unit;
		int64_t ms;
	} units[] = { { 'd', MS_PER_DAY }, { 'h', MS_PER_HOUR }, { 'm', MS_PER_MINUTE }, { 's', MS_PER_S } };
	size_t unit = 0;

	*ret = 0;
	do {
		int64_t number = digits(&at, 1, 9);

		while (unit < sizeof(units) / sizeof(units[0]) && units[unit].unit != *at)
			unit++;
		if (number < 0 || unit == sizeof(units) / sizeof(units[0]))
			return false;
		*ret += number * units[unit++].ms;
	} while (*++at);
	return true;
}

/* "2026-11-30" */
static bool read_day(const char **at, struct tm *tm)
{
	int64_t year = digits(at, 4, 4), month, day;

	if (year < 0 || !take(at, '-') || (month = digits(at, 1, 2)) < 1 || !take(at, '-') ||
	    (day = digits(at, 1, 2)) < 1)
		return false;
	tm->tm_year = (int)year - 1900;
	tm->tm_mon = (int)month - 1;
	tm->tm_mday = (int)day;
	return month <= 12 && day <= 31;
}

/* "20:31:05.250", to its end */
static bool read_time(const char *at, struct tm *tm, int64_t *ret_ms, int64_t *ret_span)
{
	int64_t hour = digits(&at, 1, 2), minute, second = 0;

	*ret_ms = 0;
	*ret_span = MS_PER_MINUTE;
	if (hour < 0 || hour > 23 || !take(&at, ':') || (minute = digits(&at, 2, 2)) < 0 || minute > 59)
		return false;
	if (take(&at, ':')) {
		second = digits(&at, 2, 2);
		*ret_span = *at ? 1 : MS_PER_S;
		if (second < 0 || second > 59 || (*at && !fraction(&at, ret_ms)))
			return false;
	}
	tm->tm_hour = (int)hour;
	tm->tm_min = (int)minute;
	tm->tm_sec = (int)second;
	return !*at;
}

static bool read_clock(const char *text, int64_t now_ms, int64_t *ret_ms, int64_t *ret_span)
{
	const char *at = text;
	bool has_day = strchr(text, '-');
	time_t now = (time_t)(now_ms / MS_PER_S);
	struct tm tm, asked, next;
	int64_t more = 0;

	if (!localtime_r(&now, &tm))
		return false;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	*ret_span = MS_PER_DAY;
	if (strcmp(text, "yesterday") == 0) {
		tm.tm_mday--;
	} else if (strcmp(text, "today") != 0) {
		if (has_day && (!read_day(&at, &tm) || (*at && !take(&at, ' ') && !take(&at, 'T'))))
			return false;
		if ((*at || !has_day) && !read_time(at, &tm, &more, ret_span))
			return false;
	}
	tm.tm_isdst = -1;
	asked = next = tm;
	*ret_ms = (int64_t)mktime(&tm) * MS_PER_S + more;
	/* The days on which summer time begins and ends have 23 and 25 hours. */
	next.tm_mday++;
	if (*ret_span == MS_PER_DAY)
		*ret_span = (int64_t)mktime(&next) * MS_PER_S - *ret_ms;
	/* A day that the month does not have would have become one of the next. */
	return *ret_ms >= 0 && (asked.tm_mday < 1 || tm.tm_mday == asked.tm_mday);
}

bool cli_instant_read(const char *text, int64_t now_ms, int64_t *ret_ms, int64_t *ret_span_ms)
{
	int64_t ms = 0;

	*ret_span_ms = 1;
	if (strcmp(text, "now") == 0) {
		*ret_ms = now_ms;
		return true;
	}
	if (*text == '-') {
		if (!read_ago(text + 1, &ms) || ms > now_ms)
			return false;
		*ret_ms = now_ms - ms;
		return true;
	}
	if (*text == '@') {
		const char *at = text + 1;
		int64_t seconds = digits(&at, 1, 12);

		*ret_span_ms = *at ? 1 : MS_PER_S;
		if (seconds < 0 || (*at && !fraction(&at, &ms)) || *at)
			return false;
		*ret_ms = seconds * MS_PER_S + ms;
		return *ret_ms <= INSTANT_MAX_MS;
	}
	return read_clock(text, now_ms, ret_ms, ret_span_ms);
}

const char *cli_instant_ms(int64_t ms, int64_t after_ms, char ret[CLI_DURATION_MAX])
{
	enum { DAY_BYTES = sizeof("2026-11-30") };
	char after[CLI_DURATION_MAX], whole[CLI_DURATION_MAX];
	size_t from;

	cli_instant(ms / MS_PER_S, whole);
	cli_instant(after_ms / MS_PER_S, after);
	from = after_ms >= 0 && strncmp(whole, after, DAY_BYTES) == 0 ? DAY_BYTES : 0;
	snprintf(ret, CLI_DURATION_MAX, "%.30s.%03u", whole + from, (unsigned)(ms % MS_PER_S) % MS_PER_S);
	return ret;
}
