/* SPDX-License-Identifier: Apache-2.0 */
#include "io/hold_log.h"

#include "base/busiest.h"
#include "base/clock.h"
#include "base/hold_record.h"
#include "base/log.h"
#include "base/log_budget.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "core/znode/record.h"
#include "protocol/bytes_format.h"
#include "protocol/number.h"

static const int64_t NS_PER_MS = 1000000, LONG_HOLD_MS = 10000, BYTES_PER_MB = 1000000;

struct hold_log {
	const char *host;
	bool wanted; /* holds are; otherwise they are of level debug */
	struct log_budget budget;
	struct busiest busiest;
	int64_t since_ns; /* of what is summed up */
	bool sums;
	struct bytes sentence, fields;
};

/* What is told, as slices. */
struct told {
	enum log_event event;
	struct hold_record hold;
	struct slice holder, holder_command;
	int64_t holder_pid, held_ms, waited_ms;
	struct log_account account;
};

static bool is_of_wait(enum log_event event)
{
	return event == LOG_EVENT_waits || event == LOG_EVENT_waited;
}

struct hold_log *hold_log_new(const uint64_t key[2], const char *host, bool wanted, int64_t mb_per_day)
{
	struct hold_log *h = mem_new(sizeof(*h));

	h->host = host;
	busiest_init(&h->busiest, key);
	hold_log_set(h, wanted, mb_per_day);
	return h;
}

void hold_log_free(struct hold_log *h)
{
	if (!h)
		return;
	busiest_deinit(&h->busiest);
	bytes_free(&h->sentence);
	bytes_free(&h->fields);
	mem_free(h);
}

void hold_log_set(struct hold_log *h, bool wanted, int64_t mb_per_day)
{
	h->wanted = wanted;
	log_budget_set(&h->budget, mb_per_day * BYTES_PER_MB);
}

/* ---- fields: what is not known is left out ---- */

/* Whole, however long it is: tools look for it. */
static void put_text(struct bytes *fields, const char *key, struct slice text)
{
	if (!text.len)
		return;
	bytes_format(fields, "%s%s=", fields->len ? " " : "", key);
	if (text.len > BYTES_SHOWN_MAX)
		bytes_quote(fields, text);
	else
		bytes_format(fields, "%v", text);
}

static void put_word(struct bytes *fields, const char *key, const char *word)
{
	if (word)
		put_text(fields, key, slice_of(word));
}

static void put_number(struct bytes *fields, const char *key, int64_t number)
{
	bytes_format(fields, "%s%s=%d", fields->len ? " " : "", key, number);
}

static void put_who(struct bytes *fields, const struct told *t)
{
	put_number(fields, "client", (int64_t)t->hold.client);
	put_number(fields, "pid", t->hold.pid);
	put_text(fields, "command", t->hold.command);
}

static void put_lock(struct bytes *fields, const struct told *t)
{
	put_word(fields, "kind", t->hold.kind);
	put_text(fields, "name", t->hold.name);
	put_word(fields, "mode", t->hold.mode);
}

/* By the clock as it is set at the end, as the time of the line is: it may have been set since the hold began. */
static int64_t since_ms(const struct told *t)
{
	return clock_wall_ms(t->hold.granted_ns);
}

static void put_hold(struct bytes *fields, const struct told *t)
{
	put_lock(fields, t);
	put_number(fields, "token", t->hold.token);
	if (t->hold.permits)
		put_number(fields, "permits", t->hold.permits);
	put_who(fields, t);
	put_text(fields, "data", t->hold.data);
	put_number(fields, "since_ms", since_ms(t));
	if (t->waited_ms >= 0)
		put_number(fields, "waited_ms", t->waited_ms);
	put_number(fields, "held_ms", t->held_ms);
	put_word(fields, "why", t->hold.why);
	put_text(fields, "before", t->hold.before);
}

static void put_delegation(struct bytes *fields, const struct told *t)
{
	put_text(fields, "name", t->hold.name);
	put_number(fields, "token", t->hold.token);
	put_who(fields, t);
	put_number(fields, "since_ms", since_ms(t));
	put_number(fields, "held_ms", t->held_ms);
	if (t->hold.takings)
		put_number(fields, "takings", t->hold.takings);
}

static void put_wait(struct bytes *fields, const struct told *t)
{
	put_lock(fields, t);
	put_who(fields, t);
	put_number(fields, "waited_ms", t->waited_ms);
	if (t->hold.why) {
		put_word(fields, "why", t->hold.why);
		return;
	}
	put_text(fields, "holder", t->holder);
	if (t->holder_pid)
		put_number(fields, "holder_pid", t->holder_pid);
	put_text(fields, "holder_command", t->holder_command);
}

/* ---- sentences ---- */

static void say_what(struct bytes *s, const struct told *t)
{
	if (t->hold.permits)
		bytes_format(s, "%d permits of semaphore %n", t->hold.permits, t->hold.name);
	else
		bytes_format(s, "%s %n", t->hold.kind, t->hold.name);
}

static void say_who(struct bytes *s, const struct told *t)
{
	bytes_format(s, "%n (pid %d, uid %d)", t->hold.command, t->hold.pid, t->account.uid);
}

static void say_hold(struct bytes *s, const struct told *t)
{
	bytes_text(s, log_event_word(t->event));
	if (t->event == LOG_EVENT_lost)
		bytes_format(s, " (%s)", t->hold.why);
	bytes_text(s, ": ");
	say_what(s, t);
	bytes_format(s, t->event == LOG_EVENT_granted ? ", held for %d ms until now by " : ", after %d ms, by ", t->held_ms);
	say_who(s, t);
	if (t->hold.data.len)
		bytes_format(s, ": %n", t->hold.data);
}

static void say_delegation(struct bytes *s, const struct told *t)
{
	bytes_text(s, "delegated: ");
	say_what(s, t);
	bytes_format(s, ", for %d ms to ", t->held_ms);
	say_who(s, t);
	if (t->hold.takings)
		bytes_format(s, ", which took it %d times", t->hold.takings);
}

static void say_wait(struct bytes *s, const struct told *t)
{
	bytes_format(s, "%s: ", log_event_word(t->event));
	say_who(s, t);
	bytes_format(s, " for %d ms, for ", t->waited_ms);
	say_what(s, t);
	if (t->hold.why)
		bytes_format(s, "; the wait has ended: %s", t->hold.why);
	else if (t->holder.len || t->holder_command.len)
		bytes_format(s, ", which is held by %n (pid %d) on host %n", t->holder_command, t->holder_pid, t->holder);
}

static void put(struct hold_log *h, const struct told *t)
{
	if (t->event == LOG_EVENT_delegated) {
		say_delegation(&h->sentence, t);
		put_delegation(&h->fields, t);
	} else if (is_of_wait(t->event)) {
		say_wait(&h->sentence, t);
		put_wait(&h->fields, t);
	} else {
		say_hold(&h->sentence, t);
		put_hold(&h->fields, t);
	}
}

/* ---- what is told, and what is summed up ---- */

static int64_t number_of(struct slice text)
{
	int64_t number;

	return number_parse(text, &number) ? number : 0;
}

static struct told read(const struct hold_log *h, const struct effects *effects, const struct effect *effect)
{
	struct slice all = effects_slice(effects, effect->data);
	struct told t = { .event = (enum log_event)effect->log.event, .hold = hold_record_read(all) };
	const struct hold_record *hold = &t.hold;
	int64_t waited_until_ns = is_of_wait(t.event) ? hold->now_ns : hold->granted_ns;

	t.account = (struct log_account){ effect->log.uid,
					  { all.data + all.len - effect->log.unit_len, effect->log.unit_len } };
	t.waited_ms = hold->asked_ns ? (waited_until_ns - hold->asked_ns) / NS_PER_MS : -1;
	if (!is_of_wait(t.event))
		t.held_ms = (hold->now_ns - hold->granted_ns) / NS_PER_MS;
	t.holder = hold->here ? slice_of(h->host) : record_get(hold->holder, "host");
	t.holder_pid = hold->here ? hold->holder_pid : number_of(record_get(hold->holder, "pid"));
	t.holder_command = hold->here ? hold->holder_command :
					hold_record_command(record_get(hold->holder, "command"), record_get(hold->holder, "name"));
	return t;
}

/* A hold is summed up at its end, as a delegation is, and a wait when it has become long. */
static void sum_up(struct hold_log *h, const struct told *t)
{
	int64_t held_ms = t->event == LOG_EVENT_waits ? -1 : t->event == LOG_EVENT_released ? t->held_ms : 0;

	if (t->event == LOG_EVENT_granted || t->event == LOG_EVENT_waited)
		return;
	if (!h->sums) {
		h->sums = true;
		h->since_ns = t->hold.now_ns;
	}
	busiest_count(&h->busiest, t->hold.name, t->hold.command, held_ms);
}

void hold_log_note(struct hold_log *h, const struct effects *effects, const struct effect *effect)
{
	struct told t = read(h, effects, effect);
	bool important = t.event == LOG_EVENT_granted || is_of_wait(t.event) || t.held_ms >= LONG_HOLD_MS;

	if (t.event != LOG_EVENT_lost && !log_budget_pass(&h->budget, &t.account, important, t.hold.now_ns)) {
		sum_up(h, &t);
		return;
	}
	bytes_clear(&h->sentence);
	bytes_clear(&h->fields);
	put(h, &t);
	log_text(h->wanted || is_of_wait(t.event) ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, t.event, &t.account,
		 bytes_view(&h->sentence), bytes_view(&h->fields));
}

/* ---- the summary ---- */

int64_t hold_log_due_ns(const struct hold_log *h, int64_t now_ns)
{
	return h->sums ? max64(h->since_ns + HOLD_LOG_SUMMARY_NS - now_ns, 1) : 0;
}

/* Of one lock; of all others, if it has no name. */
static void tell(struct hold_log *h, const struct busy *b, int64_t now_ns)
{
	struct bytes commands = { 0 };
	struct slice name = bytes_view(&b->name);

	bytes_clear(&h->sentence);
	bytes_clear(&h->fields);
	if (name.len)
		bytes_format(&h->sentence, "summary: %n", name);
	else
		bytes_text(&h->sentence, "summary: all other locks");
	bytes_format(&h->sentence, ", %d holds and %d long waits without a line of their own, the longest hold %d ms", b->own,
		     b->others, b->longest_ms);
	busiest_commands(b, &commands);
	put_text(&h->fields, "name", name);
	put_number(&h->fields, "count", (int64_t)b->own);
	put_number(&h->fields, "waits", (int64_t)b->others);
	put_text(&h->fields, "commands", bytes_view(&commands));
	put_number(&h->fields, "longest_ms", b->longest_ms);
	put_number(&h->fields, "since_ms", clock_wall_ms(h->since_ns));
	put_number(&h->fields, "until_ms", clock_wall_ms(now_ns));
	log_text(LOG_LEVEL_INFO, LOG_EVENT_summary, NULL, bytes_view(&h->sentence), bytes_view(&h->fields));
	bytes_free(&commands);
}

void hold_log_tell(struct hold_log *h, int64_t now_ns, bool all)
{
	const struct busy *shown[BUSIEST_SHOWN];
	struct busy rest = { 0 };
	size_t count;

	if (!h->sums || (!all && now_ns - h->since_ns < HOLD_LOG_SUMMARY_NS))
		return;
	rest.own = h->busiest.own;
	rest.others = h->busiest.others;
	count = busiest_look(&h->busiest, shown);
	rest.longest_ms = busiest_longest_of_others(&h->busiest, shown, count);
	for (size_t i = 0; i < count; i++) {
		tell(h, shown[i], now_ns);
		rest.own -= shown[i]->own;
		rest.others -= shown[i]->others;
	}
	if (rest.own + rest.others)
		tell(h, &rest, now_ns);
	busiest_clear(&h->busiest);
	h->sums = false;
}
