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
/* A letter goes out to that host, and has that in it. */
void letter_is_sent(struct fixture *f, const char *host, const char *part);
/* What follows the last slash. */
const char *path_end(const char *path);

/* The oldest operation is a letter to that host, and it goes out. Returns its data; `posted` is its id. */
extern char posted[128];
const char *letter_posted(struct fixture *f, const char *host);
/* Beta's answer to the letter with that id, with that line at its end. */
void answer_arrives(struct fixture *f, const char *id, const char *line);
/* Beta holds a, and the client's questions go on. */
void beta_is_listed(struct fixture *f);
/* The setup of demand_setup(), with room for many letters; its clients are no operators. */
struct fixture *letters_new(void);
