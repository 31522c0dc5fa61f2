/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/reply.h"

#include "base/mem.h"

void zk_reply_deinit(struct zk_reply *r)
{
	mem_free(r->children);
	*r = (struct zk_reply){ 0 };
}

/* The codes are an open set (newer servers have more), so there is a default. */
enum zk_code zk_reply_code(int rc)
{
	switch (rc) {
	case ZOK:
		return ZK_OK;
	case ZNONODE:
		return ZK_NONODE;
	case ZNODEEXISTS:
		return ZK_NODEEXISTS;
	case ZNOTEMPTY:
		return ZK_NOTEMPTY;
	case ZBADVERSION:
		return ZK_BADVERSION;
	case ZBADARGUMENTS:
	case ZUNIMPLEMENTED:
		return ZK_REFUSED;
	case ZSESSIONEXPIRED:
	case ZINVALIDCALLBACK:
	case ZCLOSING:
	case ZNOTHING:
	case ZSESSIONMOVED:
		return ZK_UNKNOWN;
	default:
		/* Codes below this one are the server's own refusals, such as quotas and throttling. */
		return rc <= ZAPIERROR ? ZK_REFUSED : ZK_UNKNOWN;
	}
}

const char *zk_reply_sentence(int rc)
{
	if (rc == ZNOAUTH)
		return "not authenticated: no ACL allows it to the user of zookeeper.auth_file";
	if (rc == ZSESSIONCLOSEDREQUIRESASLAUTH)
		return "the server serves only clients that authenticate: set zookeeper.auth_file";
	return zerror(rc);
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
