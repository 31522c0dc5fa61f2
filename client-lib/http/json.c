/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/json.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/clock.h"

/* ---- values ---- */

struct writer {
	FILE *file;
	char *text;
	size_t len;
	bool further; /* the next field or item has a comma before it */
};

/* An answer gets no further rows after so many bytes: the server keeps it as long as its reader does not read it. */
enum { ROWS_BYTES_MAX = 256 * 1024 };

/* A writer goes nowhere while it is open: the stream has its address. */
static void begin(struct writer *w)
{
	*w = (struct writer){ 0 };
	w->file = open_memstream(&w->text, &w->len);
	if (!w->file)
		abort();
	cli_json_into(w->file);
}

static char *end(struct writer *w)
{
	cli_json_into(NULL);
	if (fclose(w->file) != 0)
		abort();
	return w->text;
}

/* What comes next is a field of that name; NULL: an item. */
static void next(struct writer *w, const char *name)
{
	if (w->further)
		putc(',', w->file);
	if (name)
		fprintf(w->file, "\"%s\":", name);
	w->further = true;
}

static void open_with(struct writer *w, const char *name, char c)
{
	next(w, name);
	putc(c, w->file);
	w->further = false;
}

static void close_with(struct writer *w, char c)
{
	putc(c, w->file);
	w->further = true;
}

static void null(struct writer *w, const char *name)
{
	next(w, name);
	fputs("null", w->file);
}

static void text(struct writer *w, const char *name, struct slice value)
{
	next(w, name);
	cli_json_text(value);
}

/* "": null. */
static void some_text(struct writer *w, const char *name, const char *value)
{
	if (*value)
		text(w, name, slice_of(value));
	else
		null(w, name);
}

static void whole(struct writer *w, const char *name, int64_t value)
{
	next(w, name);
	fprintf(w->file, "%lld", (long long)value);
}

/* null unless `known`. */
static void whole_if(struct writer *w, const char *name, bool known, int64_t value)
{
	if (known)
		whole(w, name, value);
	else
		null(w, name);
}

static void put_real(struct writer *w, double value)
{
	if (isfinite(value))
		fprintf(w->file, "%.6g", value);
	else
		fputs("null", w->file);
}

static void real(struct writer *w, const char *name, double value)
{
	next(w, name);
	put_real(w, value);
}

static void truth(struct writer *w, const char *name, bool value)
{
	next(w, name);
	fputs(value ? "true" : "false", w->file);
}

/* JSON that was written before; NULL: `otherwise`. */
static void made(struct writer *w, const char *name, const char *json, const char *otherwise)
{
	next(w, name);
	fputs(json ? json : otherwise, w->file);
}

/* 0: of no instant. */
static int64_t since(int64_t instant_ms, int64_t now_ms)
{
	return instant_ms != INT64_MIN && now_ms > instant_ms ? now_ms - instant_ms : 0;
}

char *json_error(const char *sentence)
{
	struct writer w;

	begin(&w);
	open_with(&w, NULL, '{');
	text(&w, "error", slice_of(sentence));
	putc('}', w.file);
	return end(&w);
}

char *json_text_new(struct slice value)
{
	struct writer w;

	begin(&w);
	cli_json_text(value);
	return end(&w);
}

/* ---- clients ---- */

static void client_fields(struct writer *w, const struct sighting_client *c, const char *host)
{
	text(w, "host", slice_of(*c->host ? c->host : host));
	truth(w, "here", c->here);
	whole_if(w, "pid", c->pid > 0, c->pid);
	whole_if(w, "uid", c->pid > 0, c->uid);
	some_text(w, "command", c->command);
	some_text(w, "text", c->text);
	text(w, "mode", c->shared ? SLICE("shared") : SLICE("exclusive"));
}

static void holder_fields(struct writer *w, const struct sighting_client *c, const char *host, int64_t now_ms)
{
	client_fields(w, c, host);
	whole_if(w, "since_ms", c->since_ms != INT64_MIN, since(c->since_ms, now_ms));
}

static void holder(struct writer *w, const struct sighting_client *c, const char *host, int64_t now_ms)
{
	if (!c) {
		null(w, "holder");
		return;
	}
	open_with(w, "holder", '{');
	holder_fields(w, c, host, now_ms);
	close_with(w, '}');
}

typedef void row_fields(struct writer *w, const struct lb_reply *row, const struct sighting_client *c, const char *host,
			int64_t now_ms);

static char *rows(const struct lb_reply *array, const char *host, int64_t now_ms, row_fields *fields)
{
	const struct lb_reply *row;
	struct writer w;

	begin(&w);
	open_with(&w, NULL, '[');
	for (row = lb_reply_item(array, 0); row && ftell(w.file) < ROWS_BYTES_MAX / 2;
	     row = reply_row_after(array, row)) {
		struct sighting_client *c = sighting_client_new(row, now_ms);

		if (c) {
			open_with(&w, NULL, '{');
			fields(&w, row, c, host, now_ms);
			close_with(&w, '}');
		}
		free(c);
	}
	putc(']', w.file);
	return end(&w);
}

static void holders_row(struct writer *w, const struct lb_reply *row, const struct sighting_client *c, const char *host,
			int64_t now_ms)
{
	holder_fields(w, c, host, now_ms);
	whole_if(w, "token", c->token > 0, c->token);
}

static void queue_row(struct writer *w, const struct lb_reply *row, const struct sighting_client *c, const char *host,
		      int64_t now_ms)
{
	client_fields(w, c, host);
	whole(w, "position", reply_number(row, "position"));
	whole_if(w, "waited_ms", c->here && c->since_ms != INT64_MIN, since(c->since_ms, now_ms));
	null(w, "clients");
}

char *json_holders(const struct lb_reply *array, const char *host, int64_t now_ms)
{
	return rows(array, host, now_ms, holders_row);
}

char *json_queue(const struct lb_reply *array, const char *host, int64_t now_ms)
{
	return rows(array, host, now_ms, queue_row);
}

/* ---- overview ---- */

static void session(struct writer *w, const struct lookout *l, int64_t now)
{
	const struct lookout_session *s = &l->session;
	int64_t left = s->safe_for_ms - since(s->at_ms, now);

	open_with(w, "session", '{');
	text(w, "state", s->at_ms ? slice_of(s->state) : SLICE("none"));
	text(w, "why", slice_of(s->why));
	whole_if(w, "proof_left_ms", s->at_ms && !s->standalone, left > 0 ? left : 0);
	whole_if(w, "proof_max_ms", s->timeout_ms > 0, s->timeout_ms * 2 / 3);
	truth(w, "standalone", s->standalone);
	truth(w, "connected", s->connected);
	some_text(w, "server", s->server);
	whole_if(w, "timeout_ms", s->timeout_ms > 0, s->timeout_ms);
	real(w, "round_trip_ms", plots_at(&l->plots, PLOTS_STEPS - 1)->round_trip_ms);
	close_with(w, '}');
}

static void totals(struct writer *w, const struct lookout *l)
{
	open_with(w, "totals", '{');
	real(w, "locks", l->reading.locks);
	real(w, "holders", l->reading.holders);
	real(w, "waiters", l->reading.waiters);
	real(w, "clients", l->reading.clients);
	real(w, "grants_per_s", l->latest.grants_per_s);
	close_with(w, '}');
}

static void hosts(struct writer *w, const struct lookout *l, int64_t now)
{
	size_t count = l->session.standalone ? 0 : l->host_count; /* hosts from before its restart as standalone */

	whole_if(w, "hosts_age_ms", l->hosts_taken_ms != 0 && !l->session.standalone, since(l->hosts_taken_ms, now));
	open_with(w, "hosts", '[');
	for (size_t i = 0; i < count; i++) {
		open_with(w, NULL, '{');
		text(w, "host", slice_of(l->hosts[i].name));
		text(w, "version", slice_of(l->hosts[i].version));
		whole(w, "started_s", l->hosts[i].started_s);
		truth(w, "self", l->hosts[i].self);
		close_with(w, '}');
	}
	close_with(w, ']');
}

static void plot(struct writer *w, const struct plots *p, const char *name, size_t field)
{
	open_with(w, name, '[');
	for (unsigned int i = 0; i < PLOTS_STEPS; i++) {
		double value;

		memcpy(&value, (const char *)plots_at(p, i) + field, sizeof(value));
		next(w, NULL);
		put_real(w, value);
	}
	close_with(w, ']');
}

#define PLOT(w, p, name) plot(w, p, #name, offsetof(struct plots_step, name))

static void plots(struct writer *w, const struct plots *p)
{
	open_with(w, "plots", '{');
	whole(w, "step_s", PLOTS_STEP_S);
	whole(w, "end_ms", p->end_ms);
	PLOT(w, p, grants_per_s);
	PLOT(w, p, wait_p50_ms);
	PLOT(w, p, wait_p99_ms);
	PLOT(w, p, waiters);
	PLOT(w, p, round_trip_ms);
	PLOT(w, p, refusals);
	close_with(w, '}');
}

char *json_overview(const struct lookout *l, size_t viewers, size_t viewers_max)
{
	const char *away = lookout_away(l);
	int64_t now = lookout_now_ms();
	struct writer w;

	begin(&w);
	open_with(&w, NULL, '{');
	whole(&w, "now_ms", clock_ms(CLOCK_REALTIME));
	text(&w, "broker", away ? SLICE("away") : SLICE("ok"));
	some_text(&w, "trouble", away ? away : l->session.trouble);
	some_text(&w, "host", l->session.host);
	some_text(&w, "version", l->session.version);
	session(&w, l, now);
	totals(&w, l);
	hosts(&w, l, now);
	plots(&w, &l->plots);
	whole(&w, "viewers", (int64_t)viewers);
	whole(&w, "viewers_max", (int64_t)viewers_max);
	putc('}', w.file);
	return end(&w);
}

/* ---- locks ---- */

struct chosen {
	const struct json_query *query;
	char wanted[NAME_BYTES_MAX]; /* the text, folded, if a name can have it */
	struct sighting **list;
	size_t used, count;
};

/* `ret` has room for NAME_BYTES_MAX. */
static void fold(struct slice text, char *ret)
{
	for (size_t i = 0; i < text.len && i < NAME_BYTES_MAX; i++)
		ret[i] = (char)tolower((unsigned char)text.data[i]);
}

static bool has_text(const struct chosen *c, struct slice name)
{
	size_t len = c->query->text.len;
	char folded[NAME_BYTES_MAX];

	if (len == 0 || len > name.len || name.len > NAME_BYTES_MAX)
		return len == 0;
	fold(name, folded);
	return memmem(folded, name.len, c->wanted, len) != NULL;
}

static bool is_shown(const struct sighting *s, enum json_show show)
{
	switch (show) {
	case JSON_ALL:
		return true;
	case JSON_WAITED:
		return s->waiters > 0 || s->hosts_waiting > 0;
	case JSON_HERE:
		return s->here;
	case JSON_REMOTE:
		return !s->here;
	}
	abort();
}

static void choose(void *of, struct sighting *s)
{
	struct chosen *c = of;

	if (!sighting_is_used(s))
		return;
	c->used++;
	if (is_shown(s, c->query->show) && has_text(c, s->name))
		c->list[c->count++] = s;
}

/* Larger ones come first. */
static double weight(const struct sighting *s, enum lookout_order order)
{
	switch (order) {
	case LOOKOUT_WAIT:
		return s->waits_since_ms == INT64_MIN ? -INFINITY : -(double)s->waits_since_ms;
	case LOOKOUT_WAITERS:
		return (double)s->waiters + (s->hosts_waiting > 0 ? (double)s->hosts_waiting : 0);
	case LOOKOUT_GRANTS:
		return s->grants_per_s;
	case LOOKOUT_NAME:
	case LOOKOUT_ORDERS:
		break;
	}
	return 0;
}

static int compare(const void *a, const void *b, void *chosen)
{
	const struct sighting *x = *(struct sighting *const *)a, *y = *(struct sighting *const *)b;
	enum lookout_order order = ((const struct chosen *)chosen)->query->order;
	double left = weight(x, order), right = weight(y, order);

	if (left == right && order == LOOKOUT_WAIT) {
		left = weight(x, LOOKOUT_WAITERS);
		right = weight(y, LOOKOUT_WAITERS);
	}
	return left > right ? -1 : left < right ? 1 : slice_order(x->name, y->name);
}

static void row(struct writer *w, const struct lookout *l, struct sighting *s, int64_t now)
{
	const struct sighting_client *first = s->first ? s->first : s->far_first;
	bool far = s->far_ms != INT64_MIN;

	s->shown_ms = now;
	open_with(w, NULL, '{');
	text(w, "name", s->name);
	some_text(w, "kind", s->kind);
	some_text(w, "state", s->state);
	truth(w, "remote", !s->here);
	whole_if(w, "age_ms", far, since(s->far_ms, now));
	whole_if(w, "here_age_ms", s->here, since(s->named_ms, now));
	whole(w, "holders", s->here ? s->holders : s->far_holders > 0 ? s->far_holders : 0);
	whole(w, "waiters", s->waiters);
	whole_if(w, "hosts_waiting", s->hosts_waiting >= 0, s->hosts_waiting);
	whole(w, "waited_ms", s->waits_since_ms == INT64_MIN ? 0 : since(s->waits_since_ms, now));
	real(w, "grants_per_s", s->grants_per_s < 0 ? NAN : s->grants_per_s);
	truth(w, "delegated", s->delegated != 0);
	holder(w, first, l->session.host, now);
	close_with(w, '}');
}

char *json_locks(const struct lookout *l, const struct json_query *q)
{
	struct chosen c = { .query = q, .list = calloc(l->sightings.count + 1, sizeof(*c.list)) };
	int64_t now = lookout_now_ms();
	struct writer w;

	if (!c.list)
		abort();
	fold(q->text, c.wanted);
	sightings_walk(&l->sightings, choose, &c);
	qsort_r(c.list, c.count, sizeof(*c.list), compare, &c);
	begin(&w);
	open_with(&w, NULL, '{');
	whole(&w, "total", (int64_t)c.used);
	whole(&w, "matching", (int64_t)c.count);
	whole(&w, "offset", (int64_t)q->offset);
	whole_if(&w, "age_ms", l->near_ms != 0, since(l->near_ms, now));
	truth(&w, "truncated", l->sightings.truncated);
	open_with(&w, "rows", '[');
	for (size_t i = q->offset; i < c.count && i - q->offset < q->count && ftell(w.file) < ROWS_BYTES_MAX; i++)
		row(&w, l, c.list[i], now);
	fputs("]}", w.file);
	free(c.list);
	return end(&w);
}

/* ---- a lock ---- */

/* One word for a shell, whatever is in it. */
static void history(struct writer *w, struct slice name)
{
	struct bytes command = { 0 };

	bytes_text(&command, name.len > 0 && name.data[0] == '-' ? "lockbroker history -- '" : "lockbroker history '");
	for (size_t i = 0; i < name.len; i++) {
		if (name.data[i] == '\'')
			bytes_text(&command, "'\\''");
		else
			bytes_char(&command, name.data[i]);
	}
	bytes_char(&command, '\'');
	text(w, "history", bytes_view(&command));
	bytes_free(&command);
}

static void changes(struct writer *w, const struct sighting *s)
{
	const struct sighting_change *c;

	open_with(w, "seen", '[');
	if (s)
		TAILQ_FOREACH(c, &s->changes, of_lock) {
			open_with(w, NULL, '{');
			whole(w, "at_ms", c->at_ms);
			text(w, "text", slice_of(c->text));
			close_with(w, '}');
		}
	close_with(w, ']');
}

char *json_lock(const struct lookout *l, const struct lookout_opened *o)
{
	const struct sighting *s = sightings_find(&l->sightings, bytes_view(&o->name));
	int64_t now = lookout_now_ms();
	struct writer w;

	begin(&w);
	open_with(&w, NULL, '{');
	text(&w, "name", bytes_view(&o->name));
	some_text(&w, "kind", s ? s->kind : "");
	truth(&w, "known",
	      s || (o->holders && strcmp(o->holders, "[]") != 0) || (o->queue && strcmp(o->queue, "[]") != 0));
	whole_if(&w, "age_ms", o->answered_ms != 0, since(o->answered_ms, now));
	some_text(&w, "trouble", o->trouble);
	made(&w, "why", o->why, "\"\"");
	made(&w, "holders", o->holders, "[]");
	made(&w, "queue", o->queue, "[]");
	whole(&w, "holder_count", o->holder_count);
	whole(&w, "queue_count", o->queue_count);
	whole(&w, "queue_here_count", o->queue_here_count);
	changes(&w, s);
	history(&w, bytes_view(&o->name));
	putc('}', w.file);
	return end(&w);
}
