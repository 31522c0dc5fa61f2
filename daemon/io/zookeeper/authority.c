/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/authority.h"

#include <stdint.h>
#include <string.h>

#include "base/log.h"
#include "io/zookeeper/secret.h"

/* The library only reads the text, but its types do not say so. */
static char *unwritten(const char *text)
{
	return (char *)(uintptr_t)text;
}

void zk_authority_init(struct zk_authority *a, const struct secret *secret)
{
	a->secret = secret;
	if (secret)
		a->acl = (struct ACL){ ZOO_PERM_ALL, { unwritten("digest"), unwritten(secret_owner(secret)) } };
	a->acls = (struct ACL_vector){ 1, &a->acl };
}

void zk_authority_show(const struct zk_authority *a, zhandle_t *zh)
{
	for (size_t i = 0; a->secret && i < secret_lines(a->secret); i++) {
		const char *line = secret_line(a->secret, i);
		int rc = zoo_add_auth(zh, "digest", line, (int)strlen(line), NULL, NULL);

		if (rc != ZOK)
			log_error(zookeeper_trouble, LOG_FIELDS("error=%v", zerror(rc)),
				  "ZooKeeper client: cannot use the secret of zookeeper.auth_file: %s", zerror(rc));
	}
}

const struct ACL_vector *zk_authority_acl(const struct zk_authority *a)
{
	return a->secret ? &a->acls : &ZOO_OPEN_ACL_UNSAFE;
}
