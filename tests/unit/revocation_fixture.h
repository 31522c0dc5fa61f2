/* SPDX-License-Identifier: Apache-2.0 */
/* A demand on a lock's holders, here and on other hosts: what the tests of REVOKE and FORCEUNLOCK have in common. */
#pragma once

#include "core_fixture.h"

/* A contender of host beta, and a letter that it sends. */
extern const char elsewhere[], letter[];

/* Four connections, whose user's are operators; the daemon was started 100 s after 1970. The mailbox is scripted, too. */
int demand_setup(void **state);
int demand_setup_standalone(void **state);

/* A query finds out who holds lock a: that contender, with these data; or elsewhere. */
void held_by(struct fixture *f, const char *child, const char *data);
void held_by_beta(struct fixture *f);

/* The mailbox's watch fires: a letter of beta is in it, which is read and deleted. */
void letter_arrives(struct fixture *f, const char *name, const char *data, enum zk_code deleted);
/* What follows the last slash. */
const char *path_end(const char *path);
