/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that Redis clients send at connect and besides, and those about this connection or this daemon alone. */
#include "base/glob.h"
#include "core/client/bid.h"
#include "core/client/mlock.h"
#include "core/client/notify.h"
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/command/command.h"
#include "core/command/list.h"
#include "core/command/metrics.h"
#include "core/hosts/scan.h"
#include "core/hosts/release.h"
#include "core/lock/client_ledger.h"
#include "core/lock/delegated.h"
#include "core/lock/take_back.h"
#include "protocol/number.h"

enum { LABEL_BYTES_MAX = 64 };

/* Lists show labels on one line per client: they are printable, without spaces, and short. False: answered as none. */
static bool check_label(struct client *c, struct slice label)
{
	bool valid = label.len <= LABEL_BYTES_MAX;

	for (size_t i = 0; valid && i < label.len; i++)
		valid = label.data[i] >= '!' && label.data[i] <= '~';
	if (!valid)
		reply_error(c, ERROR_ERR, "a name or an owner has at most 64 printable ASCII characters and no spaces");
	return valid;
}

static bool set_label(struct client *c, struct bytes *to, struct slice label)
{
	if (!check_label(c, label))
		return false;
	bytes_set(to, label);
	client_ledger_changed(c);
	return true;
}

void cmd_reload(struct client *c, struct call *call)
{
	if (!client_is_operator(c)) {
		reply_denied(c, "have the configuration read again");
	} else if (c->locks->env->stopping) {
		reply_error(c, ERROR_DRAINING, "the daemon is stopping");
	} else {
		c->reloading = true;
		effects_add(c->locks->env->out, EFFECT_RELOAD);
	}
}

static void hello_reply(struct client *c)
{
	const struct broker_conf *conf = c->locks->env->conf;
	struct bytes *out = reply_out(c);

	resp_map(out, 10, c->version);
	reply_pairs(out, "server", "lockbroker", "version", conf->version, "proto", c->version, "id", c->id);
	reply_pairs(out, "mode", conf->standalone ? "standalone" : "zookeeper", "role", "master");
	resp_bulk(out, SLICE("modules"));
	resp_array(out, 0);
	reply_pairs(out, "delegation", conf->delegation ? DELEGATION_SLOTS : 0);
	reply_pairs(out, "session_page", conf->session_page, "session_page_id", conf->session_page_id);
	reply_end(c);
}

void cmd_hello(struct client *c, struct call *call)
{
	const struct slice *name = NULL;
	int64_t version = c->version;
	size_t at = 1;

	if (call->argc > 1 && (!number_parse(call->argv[at++], &version) || version < 2 || version > 3)) {
		reply_error(c, ERROR_NOPROTO, "unsupported protocol version: this server speaks 2 and 3");
		return;
	}
	while (at < call->argc) {
		if (slice_is(call->argv[at], "AUTH") && at + 2 < call->argc) {
			at += 3;
		} else if (slice_is(call->argv[at], "SETNAME") && at + 1 < call->argc) {
			name = &call->argv[at + 1];
			at += 2;
		} else {
			args_syntax_error(call);
			return;
		}
	}
	if (name && !set_label(c, &c->name, *name))
		return;
	c->version = (int)version;
	client_ledger_changed(c);
	hello_reply(c);
	notify_speak(c, (int)version);
}

static void reply_bulk(struct client *c, struct slice text)
{
	resp_bulk(reply_out(c), text);
	reply_end(c);
}

void cmd_echo(struct client *c, struct call *call)
{
	reply_bulk(c, call->argv[1]);
}

void cmd_ping(struct client *c, struct call *call)
{
	if (call->argc == 2)
		cmd_echo(c, call);
	else
		reply_status(c, "PONG");
}

void cmd_select(struct client *c, struct call *call)
{
	if (slice_is(call->argv[1], "0"))
		reply_status(c, "OK");
	else
		reply_error(c, ERROR_ERR, "there is only database 0: take the number of another one from the URL");
}

void cmd_info(struct client *c, struct call *call)
{
	struct bytes text = { 0 };

	for (size_t i = 1; i < call->argc; i++)
		if (!metrics_info_knows(call->argv[i])) {
			args_unknown_word(c, "section", call->argv[i],
				" in 'info' command; INFO alone shows all there are");
			return;
		}
	metrics_info(call->hosts, client_is_operator(c), &text, call->argc - 1, call->argv + 1);
	reply_bulk(c, bytes_view(&text));
	bytes_free(&text);
}

void cmd_metrics(struct client *c, struct call *call)
{
	struct bytes text = { 0 };

	metrics_write(call->hosts, &text);
	reply_bulk(c, bytes_view(&text));
	bytes_free(&text);
}

static void client_unblock(struct client *c, const struct call *call)
{
	struct client *other;
	int64_t id, done = 1;

	if (call->argc != 3 || !number_parse(call->argv[2], &id) || id < 1) {
		reply_error(c, ERROR_ERR, "CLIENT UNBLOCK takes the id of a client");
		return;
	}
	other = client_by_id(c->locks, (uint64_t)id);
	if (other && !client_is_own(c, other) && !client_is_operator(c)) {
		reply_denied(c, other->uid == c->uid ? "end a wait of another unit" : "end a wait of another user");
		return;
	}
	if (other && other->request) {
		request_time_out(other->request);
	} else if (other && other->mlock) {
		mlock_timed_out(other->mlock);
	} else if (other && other->bid) {
		bid_end_wait(other->bid);
	} else if (other && other->events_waiting) {
		notify_end_wait(other);
	} else if (other && other->auditing) {
		audit_leave(call->hosts, other);
		reply_nil(other);
	} else {
		done = 0;
	}
	reply_integer(c, done);
}

static void set_owner(struct client *c, struct slice name)
{
	if (!check_label(c, name))
		return;
	/* A free delegation is not held. */
	if (c->delegations)
		delegated_take_back_all(c);
	if (!group_join(c, name)) {
		reply_error(c, ERROR_ERR, "set OWNER before acquiring or waiting for a lock");
		return;
	}
	client_ledger_changed(c);
	reply_status(c, "OK");
}

static void set_child(struct client *c, struct slice text)
{
	int64_t pid;

	if (!number_parse(text, &pid) || pid < 0 || pid > INT32_MAX) {
		reply_error(c, ERROR_ERR, "CHILD takes the pid of a process, or 0");
		return;
	}
	client_set_child(c, (uint32_t)pid);
	reply_status(c, "OK");
}

static void set_text(struct client *c, struct bytes *to, struct slice label)
{
	if (set_label(c, to, label))
		reply_status(c, "OK");
}

static void client_setinfo(struct client *c, const struct call *call)
{
	struct slice what = call->argc == 4 ? call->argv[2] : (struct slice){ 0 };

	if (slice_is(what, "CHILD"))
		set_child(c, call->argv[3]);
	else if (slice_is(what, "OWNER"))
		set_owner(c, call->argv[3]);
	else if (slice_is(what, "LIB-NAME"))
		set_text(c, &c->lib_name, call->argv[3]);
	else if (slice_is(what, "LIB-VER"))
		set_text(c, &c->lib_version, call->argv[3]);
	else
		reply_error(c, ERROR_ERR, "CLIENT SETINFO takes LIB-NAME, LIB-VER, OWNER or CHILD and a value");
}

static void client_getname(struct client *c)
{
	if (c->name.len)
		reply_bulk(c, bytes_view(&c->name));
	else
		reply_nil(c);
}

void cmd_client(struct client *c, struct call *call)
{
	struct slice what = call->argv[1];

	if (slice_is(what, "ID") && call->argc == 2)
		reply_integer(c, (int64_t)c->id);
	else if (slice_is(what, "GETNAME") && call->argc == 2)
		client_getname(c);
	else if (slice_is(what, "LIST") && call->argc == 2)
		list_begin(c, LIST_CLIENTS, NULL, ORDER_NONE, 0);
	else if (slice_is(what, "UNBLOCK"))
		client_unblock(c, call);
	else if (slice_is(what, "SETINFO"))
		client_setinfo(c, call);
	else if (slice_is(what, "NO-EVICT") && call->argc == 3 &&
		 (slice_is(call->argv[2], "ON") || slice_is(call->argv[2], "OFF")))
		reply_status(c, "OK");
	else if (slice_is(what, "SETNAME") && call->argc == 3)
		set_text(c, &c->name, call->argv[2]);
	else
		args_syntax_error(call);
}

static void write_word(struct bytes *out, enum command command)
{
	struct bytes word = { 0 };

	args_command_word(&word, command);
	resp_bulk(out, bytes_view(&word));
	bytes_free(&word);
}

static void write_flags(struct bytes *out, const char *flags)
{
	size_t count = 1;
	const char *at;

	for (at = flags; *at; at++)
		count += *at == ' ';
	resp_array(out, count);
	for (at = flags; count--; at += strcspn(at, " ") + 1)
		resp_bulk(out, (struct slice){ at, strcspn(at, " ") });
}

static void write_command(struct bytes *out, enum command command, int version)
{
	const struct command_spec *spec = &command_table[command];

	if (command == COMMAND_COUNT) {
		resp_nil_array(out, version);
		return;
	}
	resp_array(out, 6);
	write_word(out, command);
	resp_integer(out, spec->args_min == spec->args_max ? spec->args_min : -spec->args_min);
	write_flags(out, spec->flags);
	for (int i = 0; i < 3; i++) /* where its keys stand: it has none */
		resp_integer(out, 0);
}

static void write_docs(struct bytes *out, enum command command, int version)
{
	if (command == COMMAND_COUNT)
		return;
	write_word(out, command);
	resp_map(out, 1, version);
	reply_pairs(out, "summary", command_table[command].summary);
}

/* Of the commands that are named, or of all. Each name is compared with all commands: so their number has a bound. */
static void describe(struct client *c, struct call *call, bool docs)
{
	struct bytes *out = reply_out(c);
	bool all = call->argc <= 2;
	size_t count = all ? COMMAND_COUNT : call->argc - 2, unknown = 0;
	enum command commands[COMMAND_COUNT];

	if (count > COMMAND_COUNT) {
		args_syntax_error(call);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		commands[i] = all ? (enum command)i : command_find(call->argv[i + 2]);
		unknown += commands[i] == COMMAND_COUNT;
	}
	if (docs)
		resp_map(out, count - unknown, c->version);
	else
		resp_array(out, count);
	for (size_t i = 0; i < count; i++) {
		if (docs)
			write_docs(out, commands[i], c->version);
		else
			write_command(out, commands[i], c->version);
	}
	reply_end(c);
}

void cmd_command(struct client *c, struct call *call)
{
	if (call->argc == 1 || slice_is(call->argv[1], "INFO"))
		describe(c, call, false);
	else if (slice_is(call->argv[1], "COUNT") && call->argc == 2)
		reply_integer(c, COMMAND_COUNT);
	else if (slice_is(call->argv[1], "DOCS"))
		describe(c, call, true);
	else
		args_syntax_error(call);
}

void command_reset_over(struct client *c)
{
	c->resetting = false;
	group_leave(c);
	if (c->child)
		client_set_child(c, 0);
	c->version = 2;
	bytes_clear(&c->name);
	client_ledger_changed(c);
	resp_status(reply_out(c), "RESET");
	reply_end_settled(c);
}

void cmd_reset(struct client *c, struct call *call)
{
	c->resetting = true;
	if (release_begin(call->hosts, c))
		command_reset_over(c);
}

void cmd_quit(struct client *c, struct call *call)
{
	reply_status(c, "OK");
	client_close(c);
}

/* ---- DELEGATE: a client asks for the page by which locks are delegated to it (lock/delegated.h) ---- */

void cmd_delegate(struct client *c, struct call *call)
{
	const struct env *env = c->locks->env;
	const char *why;

	if (!env->conf->delegation) {
		reply_error(c, ERROR_DENIED, "nothing is delegated: the configuration says locks.delegation = 0");
	} else if (c->version < 3) {
		reply_error(c, ERROR_ERR, "DELEGATE needs RESP3: say HELLO 3 first");
	} else if (c->delegations) {
		reply_error(c, ERROR_ERR, "this connection has its page already");
	} else if (!delegated_may_begin(c, &why)) {
		reply_limit(c, why);
	} else {
		c->delegating = true;
		effects_add(env->out, EFFECT_PAGE)->conn = c->conn;
	}
}

static void answer(struct client *c, const struct event *event)
{
	struct effects *out = c->locks->env->out;

	if (!event->page.page) {
		/* Not counted among what limits refuse: the client goes on by messages. */
		if (event->page.limited) {
			reply_error(c, ERROR_LIMIT, "%s", event->page.sentence);
			return;
		}
		reply_error(c, ERROR_UNAVAILABLE, "no page could be made: %s", event->page.sentence);
		return;
	}
	reply_integer(c, DELEGATION_SLOTS);
	out->list[out->count - 1].page = true;
}

void command_page(struct client *c, const struct event *event)
{
	c->delegating = false;
	if (event->page.page)
		delegated_begin(c, event->page.page);
	if (!c->closing)
		answer(c, event);
}

/* ---- RESTART: an operator asks for a hand-over to a new process (command.h) ---- */

void cmd_restart(struct client *c, struct call *call)
{
	struct locks *locks = c->locks;

	if (!client_is_operator(c)) {
		reply_denied(c, "restart the daemon");
	} else if (locks->env->stopping) {
		reply_error(c, ERROR_DRAINING, "the daemon is stopping");
	} else if (locks->restarter) {
		reply_error(c, ERROR_ERR, "not restarted: client %d has asked for that already, and is waiting for it",
			    locks->restarter->id);
	} else {
		locks->restarter = c;
		effects_add(locks->env->out, EFFECT_RESTART);
	}
}

static void reply_done(struct client *c, const struct event *event)
{
	const struct broker_conf *conf = c->locks->env->conf;

	resp_map(reply_out(c), 3, c->version);
	reply_pairs(reply_out(c), "process_id", conf->pid, "version", conf->version, "paused_us",
		    event->restart.paused_ns / 1000);
	reply_end(c);
}

void command_restart_over(struct locks *locks, const struct event *event)
{
	struct client *c = locks->restarter;

	locks->restarter = NULL;
	if (!c || c->closing)
		return;
	if (event->restart.done)
		reply_done(c, event);
	else
		reply_error(c, ERROR_ERR, "not restarted: %s", event->restart.sentence);
}

/* ---- notifications ---- */

void cmd_events(struct client *c, struct call *call)
{
	notify_wait(c, call->options.wait_ns);
}

void cmd_locks(struct client *c, struct call *call)
{
	const struct options *o = &call->options;
	int64_t count = o->given & OPTION_COUNT ? o->count : SCAN_COUNT;

	if (call->argc > 1 && !glob_is_closed(call->argv[1]))
		reply_error(c, ERROR_ERR, "the pattern has a [ without its ]: a [ of a name is written as \\[");
	else if (o->given & OPTION_ALL && !o->order)
		scan_ask(call->hosts, c, call->argv[1], o->after, count);
	else if (o->given & ~(o->order ? OPTION_ORDER | OPTION_COUNT : 0))
		args_syntax_error(call);
	else
		list_begin(c, LIST_LOCKS, call->argc > 1 ? &call->argv[1] : NULL, o->order, count);
}
