/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a handle proves to the servers who it is, and who may use the znodes that it makes. Both follow from the secret
 * (secret.h). Without a secret the handle proves nothing, and everybody may use its znodes.
 */
#pragma once

#include <zookeeper/zookeeper.h>

struct secret;

struct zk_authority {
	const struct secret *secret; /* NULL: none */
	struct ACL acl;
	struct ACL_vector acls;
};

/* `secret` must outlive it. */
void zk_authority_init(struct zk_authority *a, const struct secret *secret);
/* Gives the secret to the library, which sends it first on every connection: call this before the first connection. */
void zk_authority_show(const struct zk_authority *a, zhandle_t *zh);
/* The access list for new znodes, valid as long as `a`. */
const struct ACL_vector *zk_authority_acl(const struct zk_authority *a);
