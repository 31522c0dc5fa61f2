/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/reply.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void zk_reply_deinit(struct zk_reply *r)
{
	mem_free(r->children);
	*r = (struct zk_reply){ 0 };
}

enum { ZQUOTAEXCEEDED = -125 }; /* newer than the library */

/* Each code of a server is classed here, once. */
static const struct known {
	int rc;
	enum zk_code code;
	enum zk_cause cause; /* REFUSED, BUSY */
	const char *sentence;
} known[] = {
	{ .rc = ZOK, .code = ZK_OK },
	{ .rc = ZNONODE, .code = ZK_NONODE },
	{ .rc = ZNODEEXISTS, .code = ZK_NODEEXISTS },
	{ .rc = ZNOTEMPTY, .code = ZK_NOTEMPTY },
	{ .rc = ZBADVERSION, .code = ZK_BADVERSION },
	{ ZNOAUTH, ZK_REFUSED, ZK_CAUSE_acl, "not authenticated: no ACL allows it to the user of zookeeper.auth_file" },
	{ ZAUTHFAILED, ZK_REFUSED, ZK_CAUSE_acl, "the server refuses the authentication by zookeeper.auth_file" },
	{ ZINVALIDACL, ZK_REFUSED, ZK_CAUSE_acl, "the server does not take the ACL of zookeeper.auth_file" },
	{ ZSESSIONCLOSEDREQUIRESASLAUTH, ZK_REFUSED, ZK_CAUSE_acl,
	  "the server serves only clients that authenticate: set zookeeper.auth_file" },
	{ ZQUOTAEXCEEDED, ZK_REFUSED, ZK_CAUSE_quota,
	  "a quota of ZooKeeper is used up: raise it (setquota of zkCli.sh), or remove znodes below the path it is set on" },
	{ ZEPHEMERALONLOCALSESSION, ZK_REFUSED, ZK_CAUSE_local_session,
	  "the server gives local sessions that are not upgraded, and those can make no ephemeral znode: set "
	  "localSessionsUpgradingEnabled=true on every server" },
	{ ZTHROTTLEDOP, ZK_BUSY, ZK_CAUSE_throttled,
	  "the server is overloaded and throttles requests; it is asked again in a moment" },
	{ ZNOTREADONLY, ZK_BUSY, ZK_CAUSE_read_only,
	  "the server is read-only, because it has no quorum; another one is asked" },
	{ ZBADARGUMENTS, ZK_REFUSED, ZK_CAUSE_other, "the server takes the arguments for invalid" },
	{ ZUNIMPLEMENTED, ZK_REFUSED, ZK_CAUSE_other, "the server does not know the operation: it is too old" },
	/* Of the connection, or the library's own. */
	{ .rc = ZSESSIONEXPIRED, .code = ZK_UNKNOWN },
	{ .rc = ZINVALIDCALLBACK, .code = ZK_UNKNOWN },
	{ .rc = ZCLOSING, .code = ZK_UNKNOWN },
	{ .rc = ZNOTHING, .code = ZK_UNKNOWN },
	{ .rc = ZSESSIONMOVED, .code = ZK_UNKNOWN },
};

static const struct known *find(int rc)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].rc == rc)
			return &known[i];
	return NULL;
}

enum zk_code zk_reply_code(int rc)
{
	const struct known *k = find(rc);

	if (k)
		return k->code;
	/* Newer servers have more codes. Those below this one are the server's own refusals. */
	return rc <= ZAPIERROR ? ZK_REFUSED : ZK_UNKNOWN;
}

void zk_reply_refused(struct zk_reply *r, int rc, struct event *event)
{
	const struct known *k = find(rc);

	event->zk_answered.cause = k ? k->cause : ZK_CAUSE_other;
	if (k)
		snprintf(r->sentence, sizeof(r->sentence), "%s", k->sentence);
	else if (strcmp(zerror(rc), zerror(INT_MIN)) == 0)
		snprintf(r->sentence, sizeof(r->sentence), "the server answers with the error %d, which is newer than this program",
			 rc);
	else
		snprintf(r->sentence, sizeof(r->sentence), "%s (error %d)", zerror(rc), rc);
	event->zk_answered.data = slice_of(r->sentence);
}

struct zk_stat zk_reply_stat(const struct Stat *stat)
{
	if (!stat)
		return (struct zk_stat){ 0 };
	return (struct zk_stat){
		.czxid = stat->czxid,
		.mzxid = stat->mzxid,
		.pzxid = stat->pzxid,
		.owner = stat->ephemeralOwner,
		.version = stat->version,
		.cversion = stat->cversion,
		.children = stat->numChildren,
	};
}

void zk_reply_children(struct zk_reply *r, const struct String_vector *names, struct event *event)
{
	size_t count = names && names->count > 0 ? (size_t)names->count : 0, i;

	if (r->cap < count || !r->children) {
		r->cap = count > 2 * r->cap ? count : 2 * r->cap + 1;
		r->children = mem_resize(r->children, r->cap * sizeof(*r->children));
	}
	for (i = 0; i < count; i++)
		r->children[i] = slice_of(names->data[i]);
	event->zk_answered.count = count;
	event->zk_answered.children = r->children;
}
