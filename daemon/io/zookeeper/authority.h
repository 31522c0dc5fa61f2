/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handle shows to the servers, and whom what it makes belongs to: by the secret (secret.h). Without one it shows
 * nothing, and everybody may use what it makes.
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
/* The library sends it first on every connection; it must have it before the first connection. */
void zk_authority_show(const struct zk_authority *a, zhandle_t *zh);
/* Of what is made; valid as long as it. */
const struct ACL_vector *zk_authority_acl(const struct zk_authority *a);
