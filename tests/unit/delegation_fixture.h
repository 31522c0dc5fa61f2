/* SPDX-License-Identifier: Apache-2.0 */
/* Clients to which locks are delegated. The test takes the steps of their processes. Only the first two may have a page. */
#pragma once

#include "core_fixture.h"
#include "core/lock/delegated.h"
#include "protocol/delegation.h"

extern struct delegation_page pages[2];
extern uint64_t seen[2][DELEGATION_SLOTS + 1]; /* the latest generations, by client and slot */

/* Standalone with three connections; standalone with SHARED_DELEGATIONS_MAX + 2; three connections with ZooKeeper. */
int delegation_setup(void **state);
int delegation_setup_many(void **state);
int delegation_setup_zookeeper(void **state);

/* The client asks for its page, and gets it. */
void give_page(struct fixture *f, uint32_t conn);
void give_pages(struct fixture *f); /* of the first two */
struct delegation_slot *slot(uint32_t conn, int number);
/* True: it holds the lock, which it has just got, as a delegated one. */
bool is_delegated(uint32_t conn, int number);
/* The library's unlock and lock by the word. False: a message is needed. */
bool leave(uint32_t conn, int number);
bool take(uint32_t conn, int number);
/* It asks and gets that token, and the lock is delegated in that slot; the same of client 0, with its page, and lock a. */
void delegated(struct fixture *f, uint32_t conn, int number, const char *words, const char *token);
void delegated_a(struct fixture *f);
/* The host has a claim for lock a, f->znode, and nobody wants it; nothing is open. */
void idle_a(struct fixture *f);
