/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/hold.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "client-lib/cli/job.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/proof.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/shown.h"
#include "client-lib/wire.h"

/* The proof is checked at least this often. */
enum { PROOF_MS = 500 };

struct hold {
	const struct cli_order *order;
	struct lb *lb;
	struct cli_proof proof;
	bool lost;
};

static int written(void)
{
	if (fflush(stdout) != EOF)
		return CLI_OK;
	/* Nobody reads any longer, and so nobody needs the lock. */
	if (errno == EPIPE)
		return CLI_OK;
	cli_say("Cannot write the token: %s. Nobody would know of the lock; it is not held.", strerror(errno));
	return CLI_OSERR;
}

static int print_held(const struct hold *h, const int64_t *tokens)
{
	const struct cli_order *o = h->order;

	if (cli_json_asked)
		printf("{\"held\":[");
	for (size_t i = 0; i < o->count; i++) {
		if (cli_json_asked) {
			printf("%s{\"name\":", i > 0 ? "," : "");
			cli_json_text(slice_of(o->names[i]));
			printf(",\"token\":%lld}", (long long)tokens[i]);
		} else {
			printf("%s%lld", i > 0 ? " " : "", (long long)tokens[i]);
		}
	}
	if (o->any && !cli_json_asked)
		printf(" %s", o->names[0]);
	puts(cli_json_asked ? "]}" : "");
	return written();
}

/* The loss of one (NULL: of all). Who reads our output is the first to be told. */
static void lost(struct hold *h, const char *name, const char *why)
{
	if (h->lost)
		return;
	h->lost = true;
	if (cli_json_asked) {
		printf("{\"lost\":");
		cli_json_text(slice_of(name ? name : h->order->names[0]));
		puts("}");
	} else {
		puts("lost");
	}
	fflush(stdout);
	cli_say("The lock %s is lost: %s", name ? name : h->order->names[0], why);
}

static void lost_with(struct hold *h, enum lb_result result)
{
	char why[1024];

	lost(h, NULL, cli_why_ended(h->lb, result, why, sizeof(why)));
}

static void heed_event(struct hold *h, const struct lb_event *event)
{
	char text[1024];

	switch (event->type) {
	case LB_EVENT_LOST:
		if (strcmp(event->reason, "connection") != 0)
			lost(h, event->name, cli_why_lost(event->reason));
		break;
	case LB_EVENT_JEOPARDY:
		cli_say("ZooKeeper is unreachable; held locks are safe for %.1f s more.", (double)event->ms / 1e3);
		break;
	case LB_EVENT_SAFE:
		cli_say("ZooKeeper is back; held locks are safe.");
		break;
	case LB_EVENT_REVOKE:
		cli_say("Somebody asks for the lock %s: %s.", event->name, cli_shown(event->reason, text, sizeof(text)));
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

static void heed(struct hold *h)
{
	enum lb_result r = cli_proof_hear(&h->proof);
	struct lb_event event;

	while (h->lb->events.len > 0 && lb_event(h->lb, 0, &event) == LB_OK)
		heed_event(h, &event);
	if (r == LB_OK && !h->lost)
		r = cli_proof_ask(&h->proof, PROOF_MS);
	if (r != LB_OK)
		lost_with(h, r);
	else if (cli_proof_left_ms(&h->proof) == 0)
		lost(h, NULL, cli_proof_over(h->order->options.lease_ms > 0));
}

static int watch(struct hold *h)
{
	for (;;) {
		/* No events: a pipe without a reader, and a terminal that was hung up, are told in any case. */
		struct pollfd p[] = { { .fd = lb_fd(h->lb), .events = POLLIN }, { .fd = STDOUT_FILENO } };

		heed(h);
		if (h->lost)
			return CLI_LOST;
		cli_say_unsaid();
		poll(p, 2, (int)MIN(cli_proof_left_ms(&h->proof), PROOF_MS - 1) + 1);
		if (p[1].revents & (POLLERR | POLLHUP | POLLNVAL))
			return CLI_OK;
	}
}

bool cli_hold_is_unread(const struct cli_order *o)
{
	struct pollfd p = { .fd = STDOUT_FILENO };

	return !o->runs && poll(&p, 1, 0) == 1 && p.revents & (POLLERR | POLLHUP);
}

int cli_hold(const struct cli_order *o, struct lb *lb, const int64_t *tokens)
{
	struct hold h = { .order = o, .lb = lb, .proof = { .lb = lb, .name = o->names[0] } };
	enum lb_result r = cli_proof_begin(&h.proof);
	int status;

	if (r != LB_OK) {
		lost_with(&h, r);
		return CLI_LOST;
	}
	heed(&h);
	if (h.lost)
		return CLI_LOST;
	status = print_held(&h, tokens);
	return status == CLI_OK ? watch(&h) : status;
}
