/*
 * A grant: a client holding a lock. A lost one is void, and stays with its client until that was told in a reply or
 * in an event it read, so that a loss cannot go unseen.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/queue.h"
#include "core/mode.h"

struct client;
struct lock;

struct grant {
	struct client *client;
	struct lock *lock;
	TAILQ_ENTRY(grant) link;        /* lock->grants or lock->lost */
	TAILQ_ENTRY(grant) client_link; /* client->grants */
	enum mode mode;
	bool lost;
	bool forced;           /* LOST: somebody took it (revoke.h) */
	int64_t depth; /* levels, at least 1 */
	int64_t token;
	int64_t granted_ns;
	int64_t asked_back_ns; /* when its client was last told REVOKE; 0: never */
};

TAILQ_HEAD(grant_list, grant);

void grant_new(struct lock *lock, struct client *client, enum mode mode, int64_t token);
/* The client's grant of the lock, lost ones included; NULL. */
struct grant *grant_find(const struct lock *lock, const struct client *client);
/* Lets go of all levels, or forgets a lost one. */
void grant_end(struct grant *g);
/* Every grant of the lock is void: its holders are told. */
void grant_lose_all(struct lock *lock);
