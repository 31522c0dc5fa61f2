/* SPDX-License-Identifier: Apache-2.0 */
/* A host of four clients, for tests of one floor: what the floors above do with outcomes, told() does. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "base/container.h"
#include "base/mem.h"
#include "core/lock/locks.h"

enum { CLIENTS = 4 };

struct fixture {
	struct broker_conf conf;
	struct env env;
	struct ensemble ensemble;
	struct directories directories;
	struct locks locks;
	struct client clients[CLIENTS];
	struct client *conns[CLIENTS];
	struct effects out;
	struct bytes said;
};

/* There is a connection, and the session is proven for as long as a test takes. */
static inline struct fixture *fixture_new(const struct kind_rule *const *rules)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->conf = (struct broker_conf){
		.root = "/locks", .host = "here", .session_timeout_ns = 12000000000, .tick_ns = 2000000000,
		.limits = { .clients = 9, .locks = 9, .requests_per_lock = 9, .requests_per_client = 9,
			    .requests = 9, .grants_per_client = 9, .grants = 9, .observers = 9, .memory_bytes = 10000,
			    .user_share = 100,
			    .events_per_client = 9, .output_bytes = 4000, .session_path_bytes = 100000 },
	};
	f->env = (struct env){ .conf = &f->conf, .out = &f->out, .now_ns = 1000000000 };
	f->ensemble.env = f->directories.env = f->locks.env = &f->env;
	f->directories.ensemble = f->locks.ensemble = &f->ensemble;
	f->locks.directories = &f->directories;
	f->locks.rules = rules;
	f->locks.conns = f->conns;
	TAILQ_INIT(&f->directories.touched);
	TAILQ_INIT(&f->locks.clients);
	TAILQ_INIT(&f->locks.closing);
	TAILQ_INIT(&f->locks.outcomes);
	TAILQ_INIT(&f->locks.mlocks);
	TAILQ_INIT(&f->env.works);
	TAILQ_INIT(&f->locks.walks);
	TAILQ_INIT(&f->locks.used);
	TAILQ_INIT(&f->locks.idle);
	map_init(&f->directories.paths, 1, 2);
	map_init(&f->locks.names, 3, 4);
	accounts_init(&f->env.accounts, POOLS, 5, 6);
	map_init(&f->locks.users, 9, 10);
	map_init(&f->locks.ids, 0, 0);
	f->locks.last_client = CLIENTS;
	pools_configure(&f->env);
	map_init(&f->locks.groups, 7, 8);
	turn_init(&f->directories);
	session_init(&f->ensemble);
	window_begin(&f->ensemble.operations.window, f->ensemble.env->now_ns);
	f->ensemble.session.id = 0x1234;
	f->ensemble.session.connected = f->ensemble.session.proving = true;
	f->ensemble.session.state = SESSION_SAFE;
	f->ensemble.session.proof.safe_until_ns = INT64_MAX;
	for (uint32_t i = 0; i < CLIENTS; i++) {
		struct client *c = f->conns[i] = &f->clients[i];

		*c = (struct client){ .locks = &f->locks, .conn = i, .id = i + 1, .uid = 1000, .version = 2 };
		TAILQ_INIT(&c->requests);
		TAILQ_INIT(&c->grants);
		TAILQ_INIT(&c->observers);
		TAILQ_INIT(&c->notifications);
		TAILQ_INSERT_TAIL(&f->locks.clients, c, link);
		c->account = account_enter(&f->env.accounts, c->uid, "", 0);
		f->locks.client_count++;
		c->user = user_enter(&f->locks, c->account);
	}
	return f;
}

/* What clients are told since the last time, in words: "granted 0, lost 1". A loss that is told is forgotten. */
static inline const char *told(struct fixture *f)
{
	static const char *const words[] = {
		[OUTCOME_GRANTED] = "granted ", [OUTCOME_TIMED_OUT] = "timed out ", [OUTCOME_FAILED] = "failed ",
		[OUTCOME_LOST] = "lost ",
	};
	struct outcome *o;

	bytes_clear(&f->said);
	while ((o = TAILQ_FIRST(&f->locks.outcomes))) {
		enum outcome_kind kind = o->kind;

		bytes_text(&f->said, f->said.len ? ", " : "");
		bytes_text(&f->said, words[kind]);
		bytes_char(&f->said, (char)('0' + o->client->conn));
		outcome_drop(&f->locks.outcomes, o);
		if (kind == OUTCOME_LOST)
			grant_end(container_of(o, struct grant, outcome));
		else
			request_free(container_of(o, struct request, outcome));
	}
	bytes_char(&f->said, '\0');
	return f->said.data;
}

/* As the broker does it: what answers have shown goes before the rule. */
static inline void settle_directory(struct directory *d)
{
	if (d->facts)
		lock_learn(d);
	lock_settle(d);
}

static inline struct lock *lock_named(struct fixture *f, const char *name)
{
	struct lock *lock = lock_make(&f->locks, slice_of(name), &f->clients[0]);

	assert_non_null(lock);
	lock->directory.state = DIRECTORY_FITS;
	return lock;
}

/* All clients go. Then nothing is counted. */
static inline void fixture_free(struct fixture *f)
{
	struct lock *lock;

	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &f->clients[i];

		while (!TAILQ_EMPTY(&c->requests))
			request_end(TAILQ_FIRST(&c->requests));
		request_forget_ended(c);
		while (!TAILQ_EMPTY(&c->grants))
			grant_end(TAILQ_FIRST(&c->grants));
		notification_drop_all(c);
		assert_true(!c->request_count && !c->grant_count && !c->lost_count && !c->counted && !c->is_holder);
		group_leave(c);
		user_leave(&f->locks, c->user);
		account_leave(c->account);
		mem_free(c->blocking);
	}
	assert_true(!f->locks.request_count && !f->locks.blocked_count && !f->locks.grant_count &&
		    !f->locks.lost_count);
	assert_true(TAILQ_EMPTY(&f->locks.outcomes) && !f->locks.groups.count);
	while ((lock = TAILQ_FIRST(&f->locks.used))) {
		claim_free_all(&lock->directory);
		lock->directory.operations = 0; /* they are never answered */
		lock_free(lock);
	}
	session_deinit(&f->ensemble);
	heap_deinit(&f->env.timers);
	map_deinit(&f->directories.paths);
	map_deinit(&f->locks.names);
	map_deinit(&f->locks.users);
	map_deinit(&f->locks.ids);
	accounts_deinit(&f->env.accounts);
	bytes_free(&f->env.refusal);
	map_deinit(&f->locks.groups);
	mem_free(f->locks.spare_grant);
	mem_free(f->directories.spare_claim);
	effects_free(&f->out);
	bytes_free(&f->said);
	free(f);
}

/* The client gets the lock, as if it had asked for it. */
static inline void fixture_grant(struct lock *lock, struct client *c, int64_t token, int64_t lease_ns)
{
	struct request r = { .lock = lock, .client = c, .lease_ns = lease_ns, .place = true };

	charge_add(c->account, POOL_GRANTS, 1);
	grant_new(&r, MODE_EXCLUSIVE, token);
}
