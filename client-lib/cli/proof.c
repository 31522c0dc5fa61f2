/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/proof.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "client-lib/cli/say.h"
#include "client-lib/request.h"

enum { WORDS_MAX = 4, LOOK_MS = 10 };

/* ---- the answers ---- */

static void answered(struct cli_proof *p, int64_t valid_ms)
{
	p->until_ms = valid_ms < INT64_MAX - p->asked_ms ? p->asked_ms + valid_ms : INT64_MAX;
	p->asking = false;
}

/* Anything but a number proves nothing. */
static enum lb_result take_answer(struct cli_proof *p)
{
	const struct resp_value *answer = &p->lb->replies.values[0];

	if (p->told > 0)
		p->told--;
	else if (p->asking)
		answered(p, answer->type == RESP_INTEGER ? answer->integer : 0);
	else
		return wire_hang_up(p->lb, "the daemon sent an answer to no request", 0);
	return LB_OK;
}

/* LB_OK, or LB_CONNECTION: everything is void. */
static enum lb_result hear(struct cli_proof *p)
{
	bool had_page = p->lb->holdings.page, push;
	int64_t left = had_page ? cli_proof_left_ms(p) : 0, now = request_clock_ms();
	enum lb_result r;

	do {
		r = wire_begin(p->lb);
		if (r == LB_OK)
			r = wire_read(p->lb, wire_deadline(0), &push);
		if (r == LB_OK && !push)
			r = take_answer(p);
	} while (r == LB_OK);
	/* The broker has said where its page is now, and it is not there: from now on the broker is asked. */
	if (had_page && !p->lb->holdings.page) {
		p->until_ms = left < INT64_MAX - now ? now + left : INT64_MAX;
		p->asked_ms = 0;
	}
	return r == LB_NONE ? LB_OK : r;
}

/*
 * A daemon that accepts no further requests has sent its reason, which is read later. A socket has room for these few
 * words.
 */
static enum lb_result send_words(struct lb *lb, size_t argc, const char *const *argv)
{
	struct slice words[WORDS_MAX];
	enum lb_result r = wire_begin(lb);

	for (size_t i = 0; i < argc; i++)
		words[i] = slice_of(argv[i]);
	if (r != LB_OK)
		return r;
	resp_request(&lb->out, argc, words);
	r = wire_send(lb);
	return r == LB_NONE ? LB_OK : r;
}

/*
 * The broker was killed, and serves again. If all that its earlier page proved has run out meanwhile, because we were
 * stopped for long, for example, the next one is worth a short wait.
 */
static enum lb_result follow_page(struct cli_proof *p)
{
	int64_t deadline = wire_deadline(CLI_PROOF_MS);
	enum lb_result r = LB_OK;

	while (r == LB_OK && holdings_moved(&p->lb->holdings)) {
		/* Answers come in the order of the questions, and are told apart by it. */
		if (p->told == 0)
			r = wire_ask_page(p->lb);
		if (r != LB_OK || cli_proof_left_ms(p) > 0 || wire_now_ms() >= deadline)
			break;
		poll(&(struct pollfd){ .fd = p->lb->fd, .events = POLLIN }, 1, LOOK_MS);
		r = hear(p);
	}
	return r;
}

static enum lb_result ask(struct cli_proof *p)
{
	const char *words[] = { "VALID", p->order->names[0] };
	int64_t now = request_clock_ms();

	if (p->lb->holdings.page)
		return follow_page(p);
	if (p->asking || now < p->asked_ms + CLI_PROOF_MS)
		return LB_OK;
	p->asking = true;
	p->asked_ms = now;
	return send_words(p->lb, 2, words);
}

enum lb_result cli_proof_tell(struct cli_proof *p, size_t argc, const char *const *argv)
{
	p->told++;
	return send_words(p->lb, argc, argv);
}

int64_t cli_proof_left_ms(const struct cli_proof *p)
{
	int64_t now_ns = request_clock_ns(), left;

	if (p->lb->holdings.page)
		return holdings_valid_ms(&p->lb->holdings, p->order->names[0], now_ns);
	left = p->until_ms - now_ns / 1000000;
	return left > 0 ? left : 0;
}

const char *cli_proof_over(const struct cli_proof *p)
{
	return p->order->options.lease_ms > 0 ? "the lease has run out, or there is no longer proof that it is held."
					      : "there is no longer proof that it is held.";
}

/* ---- events of the broker ---- */

static const char *why_lost(const char *reason)
{
	static const struct {
		const char *reason, *why;
	} reasons[] = {
		{ "session", "the host's session has run out: ZooKeeper was unreachable for too long." },
		{ "deleted", "somebody deleted its znode." },
		{ "lease", "its lease has run out." },
		{ "limit", "its name is too long for the packets that the present ZooKeeper server takes." },
		{ "forced", "an operator took it by force." },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reason, reasons[i].reason) == 0)
			return reasons[i].why;
	return "the broker says so.";
}

/* A call has failed, and everything is lost. */
static void lose_all(struct cli_proof *p, enum lb_result result)
{
	bool is_end = result == LB_CONNECTION && p->lb->ended;
	const char *error = is_end ? "the connection to lockbrokerd has ended" : lb_error(p->lb);
	char why[1024];

	/* It stands behind a colon. */
	snprintf(why, sizeof(why), "%c%s%s", tolower((unsigned char)*error), *error ? error + 1 : "", cli_stop(error));
	p->lose(p->context, NULL, why);
}

static void heed_event(struct cli_proof *p, const struct lb_event *event)
{
	switch (event->type) {
	case LB_EVENT_LOST:
		/* One message reports the end of the connection, for all locks together. */
		if (strcmp(event->reason, "connection") != 0)
			p->lose(p->context, event->name, why_lost(event->reason));
		break;
	case LB_EVENT_JEOPARDY:
		cli_say("ZooKeeper is unreachable; %s safe for %.1f s more.", p->held, (double)event->ms / 1e3);
		break;
	case LB_EVENT_SAFE:
		cli_say("ZooKeeper is back; %s safe.", p->held);
		break;
	case LB_EVENT_REVOKE:
		cli_say("Somebody asks for the lock %s: %s.", event->name, event->reason);
		p->asked_back = true;
		break;
	case LB_EVENT_GRANTED:
	case LB_EVENT_TIMEOUT:
	case LB_EVENT_FAILED:
	case LB_EVENT_LEADER:
	case LB_EVENT_UNOBSERVED:
	case LB_EVENT_OTHER:
		break;
	}
}

void cli_proof_heed(struct cli_proof *p)
{
	enum lb_result r = hear(p);
	struct lb_event event;

	/* Events that came before the end of the connection tell more than that end. */
	while (p->lb->events.len > 0 && lb_event(p->lb, 0, &event) == LB_OK)
		heed_event(p, &event);
	if (r == LB_OK && !p->lost)
		r = ask(p);
	/* The daemon reports a loss. If it hangs, only the clock shows that the proof has run out. */
	if (r != LB_OK)
		lose_all(p, r);
	else if (cli_proof_left_ms(p) == 0)
		p->lose(p->context, NULL, cli_proof_over(p));
}

void cli_proof_begin(struct cli_proof *p)
{
	int64_t valid_ms = 0;
	enum lb_result r;

	p->asked_ms = request_clock_ms();
	r = lb_valid(p->lb, p->order->names[0], &valid_ms);
	answered(p, valid_ms);
	if (r == LB_OK)
		cli_proof_heed(p);
	else
		lose_all(p, r);
}
