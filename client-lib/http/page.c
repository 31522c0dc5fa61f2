/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/http/json.h"
#include "client-lib/http/page_files.h"

/* FRESH: what waits for the end of a poll; locks that are waited for have smaller numbers. */
enum { ROWS_DEFAULT = 100, ANSWERS_MAX = 16, METHODS = 0xffff, FRESH = LOOKOUT_OPENED_MAX };

static const char json_type[] = "application/json; charset=utf-8";

/* An answer to a question for locks, which others who ask the same get as well until the next second. */
struct shared_answer {
	char *query, *json; /* NULL: the place is free */
};

struct page {
	struct visitors *visitors; /* NULL: it is being made */
	struct lookout *lookout;
	struct lookout_conf conf;
	struct shared_answer answers[ANSWERS_MAX];
	unsigned int next_answer;
};

/* ---- answers ---- */

static void reply_json(struct evhttp_request *req, int code, char *json)
{
	visitors_reply(req, code, json_type, "no-store", slice_of(json));
	free(json);
}

static void refuse(struct evhttp_request *req, int code, const char *sentence)
{
	reply_json(req, code, json_error(sentence));
}

/* Their addresses do not change with the version: a browser is to ask again. */
static bool reply_file(struct evhttp_request *req, const char *path)
{
	for (size_t i = 0; i < page_file_count; i++) {
		const struct page_file *f = &page_files[i];

		if (strcmp(f->path, path) == 0) {
			visitors_reply(req, 200, f->type, "no-cache", (struct slice){ (const char *)f->data, f->len });
			return true;
		}
	}
	return false;
}

/* ---- parameters ---- */

/* Its bytes, decoded; empty if it is not there. False: it is there and empty, or it is not there. */
static bool parameter(const char *query, const char *name, struct bytes *ret)
{
	size_t len = strlen(name), size = 0;
	char *value, *decoded;

	for (const char *at = query; at; at = strchr(at, '&') ? strchr(at, '&') + 1 : NULL) {
		if (strncmp(at, name, len) != 0 || at[len] != '=')
			continue;
		value = strndup(at + len + 1, strcspn(at + len + 1, "&"));
		decoded = value ? evhttp_uridecode(value, 1, &size) : NULL;
		if (!decoded)
			abort();
		bytes_set(ret, (struct slice){ decoded, size });
		free(decoded);
		free(value);
		return ret->len > 0;
	}
	return false;
}

/* The one of the words that it is, from 0, or `missing`. -1: it is another one. */
static int word_of(const char *query, const char *name, const char *const *words, int missing)
{
	struct bytes value = { 0 };
	int i = missing;

	if (parameter(query, name, &value))
		for (i = 0; words[i] && !slice_eq(bytes_view(&value), slice_of(words[i])); i++)
			;
	bytes_free(&value);
	return words[i] ? i : -1;
}

/* -1: it is no number of at most nine digits. */
static long number_of(const char *query, const char *name, long missing)
{
	struct bytes value = { 0 };
	long number = missing;

	if (parameter(query, name, &value)) {
		bytes_char(&value, '\0');
		number = value.len <= 10 && strspn(value.data, "0123456789") == value.len - 1 ? atol(value.data) : -1;
	}
	bytes_free(&value);
	return number;
}

/* ---- overview ---- */

static char *overview(const struct page *p)
{
	return json_overview(p->lookout, visitors_streams(p->visitors), PAGE_VIEWERS_MAX);
}

static struct bytes event_of(const struct page *p)
{
	struct bytes event = { 0 };
	char *json = overview(p);

	bytes_text(&event, "event: overview\ndata: ");
	bytes_text(&event, json);
	bytes_text(&event, "\n\n");
	free(json);
	return event;
}

static void stream(struct page *p, struct evhttp_request *req)
{
	struct bytes event;

	if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD) {
		visitors_reply(req, 200, "text/event-stream", "no-store", SLICE(""));
		return;
	}
	if (!visitors_stream(p->visitors, req)) {
		refuse(req, 503,
		       "as many look already as may at a time (64 streams): ask for /api/overview now and then");
		return;
	}
	event = event_of(p);
	visitors_send_first(p->visitors, req, bytes_view(&event));
	bytes_free(&event);
}

/* ---- locks ---- */

static void forget_answers(struct page *p)
{
	for (int i = 0; i < ANSWERS_MAX; i++) {
		free(p->answers[i].query);
		free(p->answers[i].json);
		p->answers[i] = (struct shared_answer){ 0 };
	}
}

static const char *find_answer(const struct page *p, const char *query)
{
	for (int i = 0; i < ANSWERS_MAX; i++)
		if (p->answers[i].query && strcmp(p->answers[i].query, query) == 0)
			return p->answers[i].json;
	return NULL;
}

static const char *make_answer(struct page *p, const char *query, const struct json_query *q)
{
	struct shared_answer *a = &p->answers[p->next_answer++ % ANSWERS_MAX];

	free(a->query);
	free(a->json);
	a->json = json_locks(p->lookout, q);
	a->query = strdup(query);
	if (!a->query)
		abort();
	return a->json;
}

static void locks(struct page *p, struct evhttp_request *req, const char *query)
{
	static const char *const orders[] = { "wait", "waiters", "grants", "name", NULL };
	static const char *const shows[] = { "all", "waited", "here", "remote", NULL };
	int order = word_of(query, "sort", orders, 0), show = word_of(query, "show", shows, 0);
	long offset = number_of(query, "offset", 0), count = number_of(query, "count", ROWS_DEFAULT);
	const char *json = find_answer(p, query);
	struct bytes text = { 0 };
	struct json_query q;

	if (order < 0)
		refuse(req, 400, "sort is one of wait, waiters, grants and name");
	else if (show < 0)
		refuse(req, 400, "show is one of all, waited, here and remote");
	else if (offset < 0 || count < 0 || count > PAGE_ROWS_MAX)
		refuse(req, 400, "offset is a number, and count one of at most 300");
	else {
		lookout_want(p->lookout, (enum lookout_order)order);
		if (!json) {
			parameter(query, "q", &text);
			q = (struct json_query){ .order = (enum lookout_order)order,
						 .show = (enum json_show)show,
						 .text = bytes_view(&text),
						 .offset = (size_t)offset,
						 .count = (size_t)count };
			json = make_answer(p, query, &q);
		}
		visitors_reply(req, 200, json_type, "no-store", slice_of(json));
	}
	bytes_free(&text);
}

/* ---- a lock ---- */

static void reply_lock(void *of, struct evhttp_request *req, int about)
{
	struct page *p = of;
	const struct lookout_opened *o = &p->lookout->opened[about];

	if (o->refused)
		refuse(req, 400, o->trouble);
	else if (*o->trouble && o->answered_ms == 0 && !sightings_find(&p->lookout->sightings, bytes_view(&o->name)))
		refuse(req, 503, o->trouble);
	else
		reply_json(req, 200, json_lock(p->lookout, o));
}

static void lock(struct page *p, struct evhttp_request *req, const char *query)
{
	struct bytes name = { 0 };
	int opened;

	parameter(query, "name", &name);
	if (!name_valid(bytes_view(&name))) {
		refuse(req, 400,
		       "name is missing, or no name of a lock: 1 to 512 bytes of UTF-8 without control characters");
	} else {
		opened = lookout_open(p->lookout, bytes_view(&name));
		if (opened < 0)
			refuse(req, 503, "as many locks are open already as may be at a time (32): ask again later");
		else if (p->lookout->opened[opened].waits_ms != 0)
			visitors_wait(p->visitors, req, opened);
		else
			reply_lock(p, req, opened);
	}
	bytes_free(&name);
}

static void answered(void *of, int opened)
{
	struct page *p = of;

	visitors_answer(p->visitors, opened, reply_lock);
}

/* ---- who looks ---- */

static const char *query_of(struct evhttp_request *req)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));

	return query ? query : "";
}

/* The overview, or locks. */
static void reply_list(void *of, struct evhttp_request *req, int about)
{
	struct page *p = of;

	if (strcmp(evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req)), "/api/overview") == 0)
		reply_json(req, 200, overview(p));
	else
		locks(p, req, query_of(req));
}

static void seen(void *of)
{
	struct page *p = of;
	struct bytes event;

	forget_answers(p);
	if (!p->visitors)
		return;
	/* The poll that they wait for has ended, or the broker is away. */
	if (!p->lookout->late || lookout_away(p->lookout))
		visitors_answer(p->visitors, FRESH, reply_list);
	if (visitors_streams(p->visitors) == 0)
		return;
	event = event_of(p);
	visitors_send(p->visitors, bytes_view(&event));
	bytes_free(&event);
}

static bool looks(void *of)
{
	const struct page *p = of;

	return p->visitors && visitors_streams(p->visitors) > 0;
}

static void handle(void *of, struct evhttp_request *req)
{
	struct page *p = of;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
	bool late;

	if (!path)
		path = "";
	if (strcmp(path, "/") == 0 || strcmp(path, "/lock") == 0)
		path = "/index.html";
	if (reply_file(req, path))
		return;
	if (strncmp(path, "/api/", 5) != 0) {
		refuse(req, 404, "there are /, /lock and /api/overview");
		return;
	}
	path += 5;
	late = lookout_look(p->lookout);
	if (strcmp(path, "stream") == 0)
		stream(p, req);
	else if (strcmp(path, "lock") == 0)
		lock(p, req, query_of(req));
	else if (strcmp(path, "overview") != 0 && strcmp(path, "locks") != 0)
		refuse(req, 404, "there are /api/overview, /api/stream, /api/locks and /api/lock");
	else if (late)
		visitors_wait(p->visitors, req, FRESH);
	else
		reply_list(p, req, FRESH);
}

struct page *page_new(struct event_base *base, int fd, const char *socket, struct visitors_conf *conf)
{
	struct page *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->conf =
		(struct lookout_conf){ .socket = socket, .seen = seen, .answered = answered, .looks = looks, .of = p };
	p->lookout = lookout_new(base, &p->conf);
	conf->most = PAGE_VISITORS_MAX;
	conf->streams = PAGE_VIEWERS_MAX;
	conf->methods = METHODS;
	conf->handle = handle;
	conf->refuse = refuse;
	conf->of = p;
	p->visitors = visitors_new(base, fd, conf);
	return p;
}
