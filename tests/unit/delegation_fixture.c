/* SPDX-License-Identifier: Apache-2.0 */
#include "delegation_fixture.h"

#include <string.h>

struct delegation_page pages[2];
uint64_t seen[2][DELEGATION_SLOTS + 1];

static int begin(bool standalone, uint32_t conns, void **state)
{
	struct fixture *f = fixture_new(standalone);

	f->conf.delegation = true;
	f->conf.linger_ns = 2000 * MS;
	memset(pages, 0, sizeof(pages));
	memset(seen, 0, sizeof(seen));
	return fixture_setup(f, conns, state);
}

int delegation_setup(void **state)
{
	return begin(true, 3, state);
}

int delegation_setup_many(void **state)
{
	return begin(true, SHARED_DELEGATIONS_MAX + 2, state);
}

int delegation_setup_zookeeper(void **state)
{
	return begin(false, 3, state);
}

void give_page(struct fixture *f, uint32_t conn)
{
	struct event e = { .type = EVENT_CLIENT_PAGE, .conn = conn, .page.page = &pages[conn] };

	fixture_resp3(f, conn);
	fixture_ask(f, conn, "DELEGATE");
	fixture_expect(f, conn, "");
	assert_int_equal(f->page_asked, conn + 1);
	delegation_init(&pages[conn]);
	fixture_event(f, &e);
	fixture_expect(f, conn, ":63");
	assert_true(f->page_sent[conn]);
}

void give_pages(struct fixture *f)
{
	give_page(f, 0);
	give_page(f, 1);
}

struct delegation_slot *slot(uint32_t conn, int number)
{
	return &pages[conn].slots[number - 1];
}

bool is_delegated(uint32_t conn, int number)
{
	struct delegation_terms terms;

	if (!delegation_read(slot(conn, number), seen[conn][number], &terms))
		return false;
	seen[conn][number] = terms.generation;
	return true;
}

bool leave(uint32_t conn, int number)
{
	return delegation_leave(slot(conn, number), seen[conn][number]);
}

bool take(uint32_t conn, int number)
{
	slot(conn, number)->uses++;
	return delegation_take(slot(conn, number), seen[conn][number]);
}

void delegated(struct fixture *f, uint32_t conn, int number, const char *words, const char *token)
{
	fixture_say(f, conn, words, token);
	assert_true(is_delegated(conn, number));
}

void delegated_a(struct fixture *f)
{
	give_page(f, 0);
	delegated(f, 0, 1, "LOCK a SLOT 1", ":1024");
}

void idle_a(struct fixture *f)
{
	fixture_held(f, f->znode);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_no_op(f);
}
