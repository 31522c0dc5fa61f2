/* SPDX-License-Identifier: Apache-2.0 */
#include "core_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hold_record.h"
#include "core/lock/client.h"
#include "core/lock/client_ledger.h"
#include "core/state.h"
#include "core/record.h"
#include "core/snapshot.h"

/* After so many events the broker begins another ledger, which has to say the same. */
enum { RECORD_EVENTS = 16 };

struct fixture *fixture_new(bool standalone)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->conf = (struct broker_conf){
		.standalone = standalone,
		.root = "/lb",
		.host = "alpha",
		.version = "test",
		.boot_id = "boot",
		.session_page = "/run/page",
		.session_page_id = "0123",
		.pid = 7,
		.operator_socket = "/run/operator.sock",
		.session_timeout_ns = 12000 * MS,
		.tick_ns = 2000 * MS,
		.handoff_max = 64,
		.handoff_ns = 100 * MS,
		.deadlock_detection = true,
		.grant_min_ns = 1000 * MS,
		.stop_timeout_ns = 5000 * MS,
		.limits = { .clients = 64, .locks = 102, .requests_per_lock = 10, .requests_per_client = 20,
			    .requests = 20, .grants = 51, .observers = 20, .memory_bytes = 100000, .user_share = 100,
			    .grants_per_client = 5, .events_per_client = 8,
			    .output_bytes = 1 << 20, .session_path_bytes = 10000, .lasting_directories = 5000 },
	};
	f->now_ns = 1000000 * MS;
	return f;
}

void fixture_record(struct fixture *f)
{
	struct ledger *old = f->ledger;
	void *old_memory = f->memory;

	f->memory = calloc(1, FIXTURE_MEMORY_BYTES);
	f->ledger = ledger_new(f->memory, FIXTURE_MEMORY_BYTES);
	broker_record(f->broker, f->ledger);
	ledger_free(old);
	free(old_memory);
}

void fixture_start(struct fixture *f)
{
	f->broker = broker_new(&f->conf, 42, f->now_ns);
	fixture_record(f);
	fixture_event(f, &(struct event){ .type = EVENT_TIME });
	if (f->conf.standalone) {
		assert_true(f->tokens > 0);
		fixture_event(f, &(struct event){ .type = EVENT_TOKENS, .tokens.limit = f->tokens });
	}
}

void fixture_free(struct fixture *f)
{
	broker_check(f->broker);
	broker_free(f->broker);
	ledger_free(f->ledger);
	free(f->memory);
	effects_free(&f->effects);
	bytes_free(&f->log);
	for (size_t i = 0; i < FIXTURE_CONNS; i++) {
		bytes_free(&f->replies[i]);
		bytes_free(&f->pushes[i]);
	}
	free(f);
}

int fixture_setup(struct fixture *f, uint32_t conns, void **state)
{
	fixture_start(f);
	if (!f->conf.standalone) {
		assert_int_equal(f->opens, 1);
		fixture_zk_connected(f, SESSION);
		fixture_answer_session(f);
	}
	for (uint32_t conn = 0; conn < conns; conn++)
		fixture_connect(f, conn);
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

static void copy(char *to, size_t size, struct slice from)
{
	assert_true(from.len < size);
	if (from.len)
		memcpy(to, from.data, from.len);
	to[from.len] = '\0';
}

static void keep_op(struct fixture *f, const struct effect *e)
{
	struct fixture_op *op = &f->ops[f->end_op % FIXTURE_OPS];

	assert_true(f->end_op - f->first_op < FIXTURE_OPS);
	op->effect = *e;
	copy(op->path, sizeof(op->path), effects_slice(&f->effects, e->text));
	copy(op->data, sizeof(op->data), effects_slice(&f->effects, e->data));
	f->end_op++;
}

static bool is_mailbox(const struct fixture *f, const struct effect *e)
{
	return !f->mail && slice_is(effects_slice(&f->effects, e->text), "/lb/.mail/alpha");
}

static void keep_lifeline(struct fixture *f, const struct effect *e)
{
	if (e->type == EFFECT_LIFELINE_OVER) {
		f->lifelines_over++;
		return;
	}
	assert_true(f->lifeline_count < FIXTURE_CONNS);
	f->lifelines[f->lifeline_count++] = *e;
}

static void keep_holder(struct fixture *f, const struct effect *e)
{
	bool *holds = e->conn == EFFECT_NO_CONN ? &f->bearers : &f->holds[e->conn];

	assert_true(!f->conf.standalone && *holds != e->holds);
	*holds = e->holds;
}

static void keep_reply(struct fixture *f, const struct effect *e)
{
	bytes_slice(&f->replies[e->conn], effects_slice(&f->effects, e->text));
	f->lazy[e->conn] = e->lazy;
	f->page_sent[e->conn] = e->page;
}

/* A line: what it is about, the numbers that are not 0, and the texts that are not empty. */
static void keep_hold(struct fixture *f, const struct effect *e)
{
	static const char *const events[] = {
#define X(name, burst, every_ms) #name,
		LOG_EVENTS(X)
#undef X
	};
	struct hold_record h = hold_record_read(effects_slice(&f->effects, e->data));
	bool waits = !h.granted_ns;
	const struct {
		const char *key;
		int64_t number;
	} numbers[] = {
		{ "token", h.token }, { "permits", h.permits }, { "takings", h.takings },
		{ "held", waits ? 0 : (h.now_ns - h.granted_ns) / NS_PER_MS },
		{ "waited", h.asked_ns ? ((waits ? h.now_ns : h.granted_ns) - h.asked_ns) / NS_PER_MS : -1 },
		{ "holder_pid", h.holder_pid },
	};
	const struct {
		const char *key;
		struct slice text;
	} texts[] = {
		{ "command", h.command }, { "data", h.data }, { "before", h.before }, { "holder", h.holder },
		{ "holder_command", h.holder_command },
		{ "why", slice_of(h.why ? h.why : "") },
	};

	bytes_format(&f->log, "%s: %s %q, client %d, uid %d, pid %d", events[e->log.event], h.kind,
		     h.name, h.client, e->log.uid, h.pid);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].number)
			bytes_format(&f->log, ", %s %d", numbers[i].key, numbers[i].number);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].text.len)
			bytes_format(&f->log, ", %s %q", texts[i].key, texts[i].text);
	bytes_char(&f->log, '\n');
}

static void keep_line(struct fixture *f, const struct effect *e)
{
	if (e->type == EFFECT_HOLD) {
		keep_hold(f, e);
		return;
	}
	bytes_slice(&f->log, effects_slice(&f->effects, e->text));
	bytes_char(&f->log, '\n');
}

static void carry_out(struct fixture *f, const struct effect *e)
{
	switch (e->type) {
	case EFFECT_REPLY:
		keep_reply(f, e);
		break;
	case EFFECT_PUSH:
		bytes_slice(&f->pushes[e->conn], effects_slice(&f->effects, e->text));
		f->report[e->conn] = e->report;
		break;
	case EFFECT_CLOSE:
		f->closed[e->conn]++;
		break;
	case EFFECT_ZK_OPEN:
		f->opens++;
		break;
	case EFFECT_ZK_DROP:
		f->drops++;
		f->first_op = f->end_op;
		break;
	case EFFECT_ZK_LIST:
		if (is_mailbox(f, e)) {
			f->mail_op = e->op;
			break;
		}
		keep_op(f, e);
		break;
	case EFFECT_ZK_CREATE:
	case EFFECT_ZK_GET:
	case EFFECT_ZK_DELETE:
	case EFFECT_ZK_SET:
		keep_op(f, e);
		break;
	case EFFECT_TOKENS:
		f->tokens = e->limit;
		break;
	case EFFECT_HOLD: case EFFECT_LOG:
		keep_line(f, e);
		break;
	case EFFECT_PROCESS:
		break;
	case EFFECT_PAGE:
		f->page_asked = e->conn + 1;
		break;
	case EFFECT_LIFELINE:
	case EFFECT_LIFELINE_OVER:
		keep_lifeline(f, e);
		break;
	case EFFECT_HOLDER:
		keep_holder(f, e);
		break;
	case EFFECT_FORMER_ADD:
		f->added = e->session;
		break;
	case EFFECT_FORMER_END:
		assert_true(f->ended_count < FIXTURE_CONNS);
		f->ended[f->ended_count++] = e->session;
		break;
	case EFFECT_RELOAD:
		f->reloads++;
		break;
	case EFFECT_RESTART:
		f->restarts++;
		break;
	case EFFECT_STOPPED:
		f->stopped = e->close_session ? 2 : 1;
		f->refused = e->refused;
		break;
	}
}

void fixture_event(struct fixture *f, const struct event *event)
{
	/* A test may have changed a limit. */
	pools_configure(&f->broker->env);
	budget_limits(&f->broker->env, &f->broker->ensemble.budget);
	broker_handle(f->broker, f->now_ns, event, &f->effects);
	for (size_t i = 0; i < f->effects.count; i++)
		carry_out(f, &f->effects.list[i]);
	effects_clear(&f->effects);
	broker_check(f->broker);
	if (++f->events % RECORD_EVENTS == 0)
		fixture_record(f);
	if (event->type == EVENT_CLIENT_GONE)
		f->holds[event->conn] = false;
	broker_check(f->broker);
	if (f->mail_op) {
		struct event e = { .type = EVENT_ZK_ANSWERED, .zk_answered = { .op = f->mail_op, .code = ZK_OK } };

		f->mail_op = 0;
		fixture_event(f, &e);
	}
}

void fixture_restore(struct fixture *f, struct slice text)
{
	struct bytes why = { 0 };
	struct broker *b = broker_restore(f->broker->env.conf, text, f->now_ns, &why);

	if (!b)
		fail_msg("%.*s", (int)why.len, why.data);
	broker_check(b);
	broker_free(f->broker);
	f->broker = b;
	bytes_free(&why);
}

void fixture_hand_over(struct fixture *f)
{
	struct bytes text = { 0 }, again = { 0 };

	broker_snapshot(f->broker, &text);
	fixture_restore(f, bytes_view(&text));
	broker_snapshot(f->broker, &again);
	assert_true(slice_eq(bytes_view(&text), bytes_view(&again)));
	bytes_free(&text);
	bytes_free(&again);
}

void fixture_next_process(struct fixture *f)
{
	fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED, .zk_suspended = { .planned = true } });
	fixture_hand_over(f);
	fixture_simple(f, EVENT_TIME, 0);
}

void fixture_pass(struct fixture *f, int64_t ms)
{
	int64_t end = f->now_ns + ms * MS, due;

	while ((due = broker_deadline(f->broker)) <= end) {
		f->now_ns = due > f->now_ns ? due : f->now_ns;
		fixture_event(f, &(struct event){ .type = EVENT_TIME });
	}
	f->now_ns = end;
	fixture_event(f, &(struct event){ .type = EVENT_TIME });
}

void fixture_piece(struct fixture *f)
{
	assert_true(broker_has_work(f->broker));
	fixture_simple(f, EVENT_TIME, 0);
}

void fixture_pieces(struct fixture *f)
{
	while (broker_has_work(f->broker))
		fixture_piece(f);
}

void fixture_connect(struct fixture *f, uint32_t conn)
{
	fixture_connect_as(f, conn, 1000, SLICE(""), !f->plain);
}

void fixture_operators(struct fixture *f, bool are)
{
	struct client *c;

	f->plain = !are;
	for (size_t i = 0; f->broker && i < f->broker->locks.conns_cap; i++) {
		c = f->broker->locks.conns[i];
		if (!c)
			continue;
		c->privileged = are;
		c->ruled_by = 0;
		client_ledger_changed(c);
	}
}

void fixture_connect_as(struct fixture *f, uint32_t conn, uint32_t uid, struct slice unit, bool privileged)
{
	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_CONNECTED, .conn = conn,
					  .connected = { .pid = 100 + conn, .uid = uid, .comm = SLICE("test"), .unit = unit,
							 .privileged = privileged } });
}

void fixture_connect_process(struct fixture *f, uint32_t conn, uint32_t uid, uint32_t pid, uint64_t started)
{
	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_CONNECTED, .conn = conn,
					  .connected = { .pid = pid, .uid = uid, .comm = SLICE("worker"),
							 .started = started } });
}

void fixture_connect_processes(struct fixture *f)
{
	fixture_connect_process(f, 0, 1000, 50, 7);
	fixture_connect_process(f, 1, 1000, 50, 7);
	fixture_connect_process(f, 2, 1000, 50, 8);
	fixture_connect_process(f, 3, 2000, 60, 7);
	fixture_connect_process(f, 4, 1000, 0, 0);
}

void fixture_is_from(struct fixture *f, uint32_t conn, const char *unit, bool privileged)
{
	struct client_origin origin = broker_origin(f->broker, conn);

	assert_true(slice_eq(origin.unit, slice_of(unit)));
	assert_int_equal(origin.privileged, privileged);
}

void fixture_resp3(struct fixture *f, uint32_t conn)
{
	fixture_ask(f, conn, "HELLO 3");
	bytes_clear(&f->replies[conn]);
}

void fixture_ask(struct fixture *f, uint32_t conn, const char *words)
{
	struct slice argv[80];
	size_t argc = 0;

	while (*words) {
		size_t len = strcspn(words, " ");

		assert_true(argc < 80);
		argv[argc++] = (struct slice){ words, len };
		words += len + (words[len] == ' ');
	}
	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_ASKED, .conn = conn,
					  .asked = { .argc = argc, .argv = argv } });
}

void fixture_simple(struct fixture *f, enum event_type type, uint32_t conn)
{
	fixture_event(f, &(struct event){ .type = type, .conn = conn });
}

static void expect(struct bytes *got, const char *wanted)
{
	struct bytes shown = { 0 };

	for (size_t i = 0; i < got->len; i++)
		if (got->data[i] != '\r')
			bytes_char(&shown, got->data[i] == '\n' ? ' ' : got->data[i]);
	while (shown.len && shown.data[shown.len - 1] == ' ')
		shown.len--;
	bytes_char(&shown, '\0');
	assert_string_equal(shown.data, wanted);
	bytes_free(&shown);
	bytes_clear(got);
}

void fixture_expect(struct fixture *f, uint32_t conn, const char *reply)
{
	expect(&f->replies[conn], reply);
}

void fixture_expect_push(struct fixture *f, uint32_t conn, const char *push)
{
	expect(&f->pushes[conn], push);
}

void fixture_say(struct fixture *f, uint32_t conn, const char *words, const char *reply)
{
	fixture_ask(f, conn, words);
	fixture_expect(f, conn, reply);
}

bool fixture_has(const struct fixture *f, uint32_t conn, const char *part)
{
	struct slice got = bytes_view(&f->replies[conn]);

	return got.len && memmem(got.data, got.len, part, strlen(part));
}

bool fixture_logged(struct fixture *f, const char *text)
{
	bool found = f->log.len && memmem(f->log.data, f->log.len, text, strlen(text));

	bytes_clear(&f->log);
	return found;
}

void fixture_zk_connected(struct fixture *f, int64_t session)
{
	struct event e = { .type = EVENT_ZK_CONNECTED };

	e.zk_connected.session = session;
	e.zk_connected.timeout_ns = f->conf.session_timeout_ns;
	e.zk_connected.asked_ns = f->now_ns - f->handshake_ns;
	e.zk_connected.server = SLICE("127.0.0.1:2181");
	f->first_op = f->end_op;
	fixture_event(f, &e);
}

void fixture_reconnected(struct fixture *f)
{
	fixture_zk_connected(f, SESSION);
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_OK);
}

void fixture_reconnect(struct fixture *f)
{
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
}

bool fixture_is_open(const struct fixture *f)
{
	return f->first_op < f->end_op;
}

const struct fixture_op *fixture_oldest(const struct fixture *f)
{
	assert_true(fixture_is_open(f));
	return &f->ops[f->first_op % FIXTURE_OPS];
}

const struct fixture_op *fixture_op(struct fixture *f, enum effect_type type, const char *path_end)
{
	const struct fixture_op *op = fixture_oldest(f);
	size_t len = strlen(op->path), end = strlen(path_end);

	assert_int_equal(op->effect.type, type);
	assert_true(len >= end);
	assert_string_equal(op->path + len - end, path_end);
	return op;
}

void fixture_refuse_own(struct fixture *f)
{
	assert_true(fixture_op(f, EFFECT_ZK_GET, "")->effect.watch);
	assert_non_null(strstr(fixture_oldest(f)->path, "1000abcd"));
	fixture_answer(f, ZK_REFUSED);
}

void fixture_no_op(struct fixture *f)
{
	assert_int_equal(f->first_op, f->end_op);
}

static void answer(struct fixture *f, struct event *e)
{
	e->type = EVENT_ZK_ANSWERED;
	e->zk_answered.op = fixture_oldest(f)->effect.op;
	f->first_op++;
	fixture_event(f, e);
}

void fixture_answer(struct fixture *f, enum zk_code code)
{
	struct event e = { .zk_answered.code = code };

	e.zk_answered.path = slice_of(fixture_oldest(f)->path);
	answer(f, &e);
}

void fixture_answer_beats(struct fixture *f)
{
	while (fixture_is_open(f) && strcmp(fixture_oldest(f)->path, "/lb/.hosts/alpha") == 0)
		fixture_answer(f, ZK_OK);
}

void fixture_answer_beat(struct fixture *f, int64_t zxid)
{
	fixture_op(f, EFFECT_ZK_SET, "/lb/.hosts/alpha");
	answer(f, &(struct event){ .zk_answered = { .code = ZK_OK, .stat.mzxid = zxid } });
}

void fixture_answer_made(struct fixture *f, uint32_t seq, int64_t czxid, char *name, size_t size)
{
	char path[300];
	struct event e = { .zk_answered.code = ZK_OK };

	assert_int_equal(fixture_oldest(f)->effect.create, ZK_EPHEMERAL_SEQUENTIAL);
	snprintf(path, sizeof(path), "%s%010u", fixture_oldest(f)->path, seq);
	snprintf(name, size, "%s", strrchr(path, '/') + 1);
	e.zk_answered.path = slice_of(path);
	e.zk_answered.stat.czxid = czxid;
	answer(f, &e);
}

void fixture_answer_get(struct fixture *f, int64_t czxid, int64_t owner, const char *data)
{
	answer(f, &(struct event){ .zk_answered = { .code = ZK_OK, .stat = { .czxid = czxid, .owner = owner },
						    .data = slice_of(data) } });
}

void fixture_answer_write(struct fixture *f, enum zk_code code)
{
	const struct effect *e = &fixture_op(f, EFFECT_ZK_SET, "/.hosts/alpha")->effect;

	assert_true(e->exact && e->version == INT32_MAX);
	fixture_answer(f, code);
}

void fixture_answer_duplicate(struct fixture *f, int64_t owner, int64_t mzxid, const char *data)
{
	fixture_op(f, EFFECT_ZK_GET, "/.hosts/alpha");
	answer(f, &(struct event){ .zk_answered = { .code = ZK_OK, .stat = { .owner = owner, .mzxid = mzxid },
						    .data = slice_of(data) } });
}

void fixture_answer_list(struct fixture *f, int64_t czxid, size_t count, const char *const *children)
{
	struct slice *slices = calloc(count + 1, sizeof(*slices));
	struct event e = { .zk_answered.code = ZK_OK };

	for (size_t i = 0; i < count; i++)
		slices[i] = slice_of(children[i]);
	e.zk_answered.stat.czxid = czxid;
	e.zk_answered.count = count;
	e.zk_answered.children = slices;
	answer(f, &e);
	free(slices);
}

const char *const *fixture_numbered(const char *begin, int digits, int count)
{
	enum { MOST = 1001 };
	static char names[MOST][304];
	static const char *ret[MOST];

	assert_true(count <= MOST);
	for (int i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "%s%0*d", begin, digits, i);
		ret[i] = names[i];
	}
	return ret;
}

void fixture_watch(struct fixture *f, enum zk_watch type, const char *path)
{
	fixture_event(f, &(struct event){ .type = EVENT_ZK_WATCH, .zk_watch = { type, slice_of(path) } });
}

void fixture_watch_contender(struct fixture *f, enum zk_watch type, const char *name)
{
	fixture_watch(f, type, fixture_words(f, "/lb/a/%s", name));
}

void fixture_answer_session(struct fixture *f)
{
	while (fixture_is_open(f))
		fixture_answer(f, ZK_OK);
}

void fixture_ask_to_create(struct fixture *f, uint32_t conn)
{
	fixture_ask(f, conn, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	snprintf(f->znode, sizeof(f->znode), "%s0000000005",
		 strrchr(fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__")->path, '/') + 1);
}

void fixture_join(struct fixture *f, uint32_t conn, const char *words)
{
	fixture_ask(f, conn, words);
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve_made(f, "", 5, 77, f->znode);
}

void fixture_lock_held(struct fixture *f, uint32_t conn, const char *lock, uint32_t seq, int64_t czxid, char *name,
		       size_t size)
{
	char words[128];
	const char *children[1] = { name };

	snprintf(words, sizeof(words), "LOCK %s", lock);
	fixture_ask(f, conn, words);
	if (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
		fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	fixture_answer_made(f, seq, czxid, name, size);
	fixture_op(f, EFFECT_ZK_LIST, lock);
	fixture_answer_list(f, 1, 1, children);
}

void fixture_held(struct fixture *f, char name[128])
{
	fixture_lock_held(f, 0, "a", 5, 77, name, 128);
	fixture_expect(f, 0, ":78848");
	fixture_no_op(f);
}

void fixture_serve(struct fixture *f, enum effect_type type, const char *path_end, enum zk_code code)
{
	fixture_op(f, type, path_end);
	fixture_answer(f, code);
}

void fixture_serve_get(struct fixture *f, const char *path_end, int64_t czxid, int64_t owner, const char *data)
{
	fixture_op(f, EFFECT_ZK_GET, path_end);
	fixture_answer_get(f, czxid, owner, data);
}

void fixture_serve_list(struct fixture *f, const char *path_end, size_t count, const char *const *children)
{
	fixture_op(f, EFFECT_ZK_LIST, path_end);
	fixture_answer_list(f, 1, count, children);
}

void fixture_serve_made(struct fixture *f, const char *path_end, uint32_t seq, int64_t czxid, char name[128])
{
	fixture_op(f, EFFECT_ZK_CREATE, path_end);
	fixture_answer_made(f, seq, czxid, name, 128);
}

void fixture_serve_alone(struct fixture *f, const char *path_end, uint32_t seq, int64_t czxid, char name[128])
{
	const char *path = fixture_oldest(f)->path;
	char directory[256];

	snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path), path);
	fixture_serve_made(f, path_end, seq, czxid, name);
	fixture_serve_list(f, directory, 1, (const char *[]){ name });
}

static void expect_text(struct bytes *got, const char *at, const char *text)
{
	if (!at)
		fail_msg("no %s in: %.*s", text, (int)got->len, got->data);
	bytes_clear(got);
}

void fixture_expect_begin(struct fixture *f, uint32_t conn, const char *begin)
{
	struct bytes *got = &f->replies[conn];

	expect_text(got, got->len >= strlen(begin) && !memcmp(got->data, begin, strlen(begin)) ? begin : NULL, begin);
}

void fixture_expect_part(struct fixture *f, uint32_t conn, const char *part)
{
	struct bytes *got = &f->replies[conn];

	expect_text(got, got->len ? memmem(got->data, got->len, part, strlen(part)) : NULL, part);
}

void fixture_say_begin(struct fixture *f, uint32_t conn, const char *words, const char *begin)
{
	fixture_ask(f, conn, words);
	fixture_expect_begin(f, conn, begin);
}

void fixture_say_part(struct fixture *f, uint32_t conn, const char *words, const char *part)
{
	fixture_ask(f, conn, words);
	fixture_expect_part(f, conn, part);
}

void fixture_set_held(struct fixture *f, const char *words)
{
	fixture_ask(f, 0, words);
	if (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
		fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve_alone(f, "-__WRIT__", 5, 77, f->znode);
	fixture_expect(f, 0, "+OK");
	fixture_no_op(f);
}

const char *fixture_words(struct fixture *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	assert_in_range(vsnprintf(f->words, sizeof(f->words), format, args), 1, sizeof(f->words) - 1);
	va_end(args);
	return f->words;
}
