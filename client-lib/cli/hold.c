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

static int print_held(const struct cli_order *o, const int64_t *tokens)
{
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
static void lost(void *context, const char *name, const char *why)
{
	struct cli_proof *p = context;

	if (p->lost)
		return;
	p->lost = true;
	name = name ? name : p->order->names[0];
	if (cli_json_asked) {
		printf("{\"lost\":");
		cli_json_text(slice_of(name));
		puts("}");
	} else {
		puts("lost");
	}
	fflush(stdout);
	cli_say("The lock %s is lost: %s", name, why);
}

static int watch(struct cli_proof *proof)
{
	for (;;) {
		/* No events: a pipe without a reader, and a terminal that was hung up, are told in any case. */
		struct pollfd p[] = { { .fd = lb_fd(proof->lb), .events = POLLIN }, { .fd = STDOUT_FILENO } };

		cli_proof_heed(proof);
		if (proof->lost)
			return CLI_LOST;
		cli_say_unsaid();
		poll(p, 2, (int)MIN(cli_proof_left_ms(proof), CLI_PROOF_MS - 1) + 1);
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
	struct cli_proof proof = { .lb = lb, .order = o, .held = "held locks are", .lose = lost, .context = &proof };
	int status;

	cli_proof_begin(&proof);
	if (proof.lost)
		return CLI_LOST;
	status = print_held(o, tokens);
	return status == CLI_OK ? watch(&proof) : status;
}
