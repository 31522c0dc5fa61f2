/* SPDX-License-Identifier: Apache-2.0 */
/* The seam between adapters and broker: events in, effects out, the clock, and the shares of a turn. */
#include "io/base/feed.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/unit/unit.h"

#define MS INT64_C(1000000)

static struct feed *feed;
static char replies[256];
static uint64_t carried_out;

static void carry_out(void *arg, const struct event *event, struct effects *effects)
{
	assert_ptr_equal(arg, &feed);
	carried_out++;
	for (size_t i = 0; i < effects->count; i++) {
		struct slice text = effects_slice(effects, effects->list[i].text);

		if (effects->list[i].type == EFFECT_REPLY)
			snprintf(replies + strlen(replies), sizeof(replies) - strlen(replies), "%.*s", (int)text.len, text.data);
	}
}

static int begin(void **state)
{
	static const struct broker_conf conf = {
		.standalone = true,
		.root = "/lb",
		.host = "alpha",
		.version = "test",
		.boot_id = "boot",
		.session_page = "/run/page",
		.session_page_id = "0123",
		.limits = { .clients = 4,
			    .locks = 4,
			    .requests_per_lock = 4,
			    .requests_per_client = 4,
			    .requests = 4,
			    .grants_per_client = 4,
			    .grants = 4,
			    .user_share = 100,
			    .events_per_client = 4,
			    .output_bytes = 1 << 20,
			    .session_path_bytes = 10000 },
	};

	replies[0] = '\0';
	carried_out = 0;
	assert_int_equal(feed_new(&feed, &conf, 1), 0);
	feed_attach(feed, carry_out, &feed);
	return 0;
}

static int end(void **state)
{
	feed_free(feed);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static void asks(const char *word)
{
	const struct slice argv[] = { slice_of(word) };
	const struct event event = { .type = EVENT_CLIENT_ASKED, .conn = 0, .asked = { .argc = 1, .argv = argv } };

	feed_event(feed, &event);
}

TEST(effects_are_carried_out_event_by_event)
{
	const struct event connected = { .type = EVENT_CLIENT_CONNECTED, .conn = 0, .connected = { .pid = 1 } };

	feed_event(feed, &connected);
	asks("PING");
	assert_string_equal(replies, "+PONG\r\n");
	asks("PING");
	assert_string_equal(replies, "+PONG\r\n+PONG\r\n");
	assert_int_equal(carried_out, 3);
}

TEST(the_clock_is_read_for_each_event)
{
	const struct event nothing = { .type = EVENT_TIME };
	int64_t before = feed_now(feed);

	assert_true(feed_seen(feed) == before);
	feed_event(feed, &nothing);
	assert_true(feed_seen(feed) >= before);
	assert_true(feed_now(feed) >= feed_seen(feed));
}

static void pass_longer(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 3 * MS }, NULL); /* more time than the share has: nothing is waited for */
}

TEST(a_share_begins_with_its_first_event)
{
	const struct event nothing = { .type = EVENT_TIME };

	feed_begin_share(feed, 0, 2 * MS);
	pass_longer();
	feed_now(feed);
	assert_false(feed_share_spent(feed));
	feed_event(feed, &nothing);
	pass_longer();
	assert_false(feed_share_spent(feed)); /* the clock was not read since */
	feed_now(feed);
	assert_true(feed_share_spent(feed));
	feed_begin_share(feed, 0, 2 * MS);
	assert_false(feed_share_spent(feed));
	feed_begin_share(feed, feed_now(feed), 2 * MS); /* what is done before the first event counts */
	pass_longer();
	assert_false(feed_share_spent(feed));
	feed_event(feed, &nothing);
	assert_true(feed_share_spent(feed));
}

TEST(a_hurry_counts_for_one_turn)
{
	assert_false(feed_begin_turn(feed));
	feed_hurry(feed);
	feed_hurry(feed);
	assert_true(feed_begin_turn(feed));
	assert_false(feed_begin_turn(feed));
}
