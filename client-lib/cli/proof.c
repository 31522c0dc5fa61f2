/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/proof.h"

#include <poll.h>

#include "client-lib/request.h"

enum { WORDS_MAX = 4, LOOK_MS = 10 };

static void answered(struct cli_proof *p, int64_t valid_ms)
{
	p->until_ms = valid_ms < INT64_MAX - p->asked_ms ? p->asked_ms + valid_ms : INT64_MAX;
	p->asking = false;
}

enum lb_result cli_proof_begin(struct cli_proof *p)
{
	int64_t valid_ms = 0;
	enum lb_result r;

	p->asked_ms = request_clock_ms();
	r = lb_valid(p->lb, p->name, &valid_ms);
	answered(p, valid_ms);
	return r;
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

enum lb_result cli_proof_hear(struct cli_proof *p)
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
static enum lb_result follow_page(struct cli_proof *p, int64_t wait_ms)
{
	int64_t deadline = wire_deadline(wait_ms);
	enum lb_result r = LB_OK;

	while (r == LB_OK && holdings_moved(&p->lb->holdings)) {
		/* Answers come in the order of the questions, and are told apart by it. */
		if (p->told == 0)
			r = wire_ask_page(p->lb);
		if (r != LB_OK || cli_proof_left_ms(p) > 0 || wire_now_ms() >= deadline)
			break;
		poll(&(struct pollfd){ .fd = p->lb->fd, .events = POLLIN }, 1, LOOK_MS);
		r = cli_proof_hear(p);
	}
	return r;
}

enum lb_result cli_proof_ask(struct cli_proof *p, int64_t every_ms)
{
	const char *words[] = { "VALID", p->name };
	int64_t now = request_clock_ms();

	if (p->lb->holdings.page)
		return follow_page(p, every_ms);
	if (p->asking || now < p->asked_ms + every_ms)
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
		return holdings_valid_ms(&p->lb->holdings, p->name, now_ns);
	left = p->until_ms - now_ns / 1000000;
	return left > 0 ? left : 0;
}

const char *cli_proof_over(bool leased)
{
	return leased ? "the lease has run out, or there is no longer proof that it is held."
		      : "there is no longer proof that it is held.";
}
