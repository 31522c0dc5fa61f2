/* SPDX-License-Identifier: Apache-2.0 */
/* For targets that make brokers: the configuration of tests/unit/snapshot_1.txt, and a while of a broker's life. */
#pragma once

#include "core/broker.h"
#include "core/state.h"

static const int64_t SECOND = 1000000000;

static const struct broker_prefix prefixes[] = {
	{ "m/", FLAVOUR_MUTEX, "/app/locks", 0 },
	{ "k/", FLAVOUR_KAZOO, "", 0 },
};

static const struct broker_conf conf = {
	.root = "/locks",
	.operator_socket = "/run/operator.sock",
	.host = "h1",
	.version = "fuzz",
	.boot_id = "fuzz",
	.session_page = "",
	.session_page_id = "",
	.session_timeout_ns = 4000000000,
	.tick_ns = 400000000,
	.prefixes = prefixes,
	.prefix_count = 2,
	.deadlock_detection = true,
	.log_level = EFFECT_LEVEL_DEBUG,
	.stop_timeout_ns = 2000000000,
	.limits = { .clients = 100,
		    .locks = 100,
		    .requests_per_lock = 100,
		    .requests_per_client = 100,
		    .requests = 100,
		    .grants_per_client = 100,
		    .grants = 100,
		    .observers = 100,
		    .memory_bytes = 1 << 20,
		    .user_share = 75,
		    .events_per_client = 100,
		    .output_bytes = 1 << 20,
		    .session_path_bytes = 100000 },
};

static void handle(struct broker *b, int64_t now_ns, const struct event *e)
{
	struct effects out = { 0 };

	broker_handle(b, now_ns, e, &out);
	broker_check(b);
	effects_free(&out);
}

/* It lives for a while: asked, connected, cut off, and at last without a session. */
static void live(struct broker *b, int64_t now_ns)
{
	const struct slice info[] = { SLICE("INFO") }, locks[] = { SLICE("LOCKS") },
			   list[] = { SLICE("CLIENT"), SLICE("LIST") }, metrics[] = { SLICE("METRICS") };
	const struct slice *const words[] = { info, locks, list, metrics };
	struct event connected = { .type = EVENT_ZK_CONNECTED };

	connected.zk_connected.session = b->ensemble.session.id ? b->ensemble.session.id : 7;
	connected.zk_connected.timeout_ns = 4 * SECOND;
	connected.zk_connected.asked_ns = now_ns;
	handle(b, now_ns, &(struct event){ .type = EVENT_TIME });
	for (uint32_t i = 0; i < 6; i++)
		if (i < b->locks.conns_cap && b->locks.conns[i] && !b->locks.conns[i]->asking)
			handle(b, now_ns,
			       &(struct event){ .type = EVENT_CLIENT_ASKED,
						.conn = i,
						.asked = { i % 4 == 2 ? 2 : 1, words[i % 4] } });
	handle(b, now_ns + SECOND / 10, &connected);
	handle(b, now_ns + SECOND / 5,
	       &(struct event){ .type = EVENT_ZK_ANSWERED,
				.zk_answered = { .op = b->ensemble.operations.first, .code = ZK_OK } });
	handle(b, now_ns + SECOND / 4, &(struct event){ .type = EVENT_ZK_SUSPENDED });
	handle(b, now_ns + 20 * SECOND, &(struct event){ .type = EVENT_TIME });
}
