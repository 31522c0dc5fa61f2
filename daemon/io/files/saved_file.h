/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `saved` (saved.h), version 5:
 *
 *     struct saved_file | the identity, a text | struct saved_conn for each number of a connection | memory
 *
 * Each part begins where a page of this machine does, so that added memory can be mapped. The memory is the core's
 * (core/port/ledger.h); it is last, so that it can grow while the file is used, and `memory_bytes` says how much of it
 * there is.
 */
#pragma once

#include <stdint.h>
#include <unistd.h>

#include "core/session/former.h"
#include "io/base/zk_identity.h"

enum {
	SAVED_MAGIC = 0x4c425356,
	SAVED_VERSION = 5,
	SAVED_BOOT_ID_MAX = 64,
	SAVED_HOST_MAX = 256,
	SAVED_IDENTITY_MAX = 1 << 20,
	SAVED_CONNS_MAX = 1 << 22,
	SAVED_PAGE_MIN = 4096,
};

#define SAVED_MEMORY_MAX (UINT64_C(1) << 30)

struct saved_session {
	int64_t id; /* 0: none */
	char password[ZK_PASSWORD_BYTES];
	int64_t safe_until_ns, timeout_ns;
};

struct saved_former {
	int64_t id; /* 0: none */
	char password[ZK_PASSWORD_BYTES];
	int64_t not_before_ns;
};

struct saved_conn {
	uint32_t busy;          /* something is under way, so that it cannot go on in another process */
	uint32_t kept;          /* the keeper has it; `busy` counts only then */
	uint32_t holds;
	uint32_t pid, uid, gid; /* of the process that connected */
	uint64_t start;         /* of that process; 0: unknown */
	uint64_t cookie;        /* of our end, which no other socket of this boot has; 0: there is no connection */
	uint64_t peer;          /* the other end; 0: not known yet */
	int64_t until_ns;       /* of a ghost: so long its process may believe to hold something; of any other: 0 */
};

struct saved_file {
	uint32_t magic, version;
	uint64_t namespace;     /* of the process numbers */
	uint64_t network;       /* of the connections */
	uint64_t device, inode; /* of this file: a copy has others */
	uint64_t clock;         /* the namespace of the instants */
	uint64_t writer_start;
	uint32_t writer, standalone; /* the daemon */
	uint32_t conn_count, present; /* which of the two sessions */
	uint64_t identity_bytes, memory_bytes;
	char boot_id[SAVED_BOOT_ID_MAX], host[SAVED_HOST_MAX];
	struct saved_session session[2];
	struct saved_former former[FORMERS_MAX];
	uint64_t finished;      /* the parcel that a process has left which then ended (saved_finish()); 0: none */
	uint64_t bearers;       /* not 0: somebody without a connection holds something, too */
};

_Static_assert(sizeof(struct saved_file) <= SAVED_PAGE_MIN, "the last members are 0 in files of earlier versions");

/* The entry of a session; 0: a free entry. NULL: there is none. */
static inline struct saved_former *saved_former_find(struct saved_former list[FORMERS_MAX], int64_t session)
{
	for (size_t i = 0; i < FORMERS_MAX; i++)
		if (list[i].id == session)
			return &list[i];
	return NULL;
}

static inline uint64_t saved_pages(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

static inline uint64_t saved_identity_at(void)
{
	return saved_pages(sizeof(struct saved_file));
}

static inline uint64_t saved_conns_at(uint64_t identity_bytes)
{
	return saved_identity_at() + saved_pages(identity_bytes);
}

static inline uint64_t saved_memory_at(uint64_t identity_bytes, uint64_t conns)
{
	return saved_conns_at(identity_bytes) + saved_pages(conns * sizeof(struct saved_conn));
}
