/* SPDX-License-Identifier: Apache-2.0 */
/* A whole core, and a ZooKeeper that keeps a list of directories, for tests of new names and of lasting directories. */
#pragma once

#include "core_fixture.h"

enum { DIRS = 2048, OPERATOR = 3 };

struct dir {
	char path[64], child[128];
	size_t made; /* how often it was made */
};

extern struct dir dirs[DIRS];
extern size_t dir_count, made, removed; /* `made`, `removed`: totals */

/* Users 1000 to 1002, and an operator. The limits: new names at once, those of a second, and the share of a user. */
int names_setup(void **state, size_t names, size_t per_s, unsigned int share);
/* New names are not limited. k/ and old/ are of flavour kazoo; of k/ idle directories are removed after a minute. */
int names_setup_kazoo(void **state);

size_t dir_of(const char *path, bool make); /* its index; DIRS: there is none */
void answer_all(struct fixture *f);
void ask(struct fixture *f, uint32_t conn, const char *words);
void pass(struct fixture *f, int64_t ms);
void pass_s(struct fixture *f, int64_t s); /* with heartbeats that are answered */
bool got(const struct fixture *f, uint32_t conn, const char *begin);
void use(struct fixture *f, const char *name); /* client 0 takes and releases it */
void hand_over(struct fixture *f);             /* another process goes on */
