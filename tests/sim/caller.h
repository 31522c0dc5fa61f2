/* SPDX-License-Identifier: Apache-2.0 */
/* A client in the simulator: the requests it has sent, and the locks it believes it holds. */
#pragma once

#include "core/broker.h"
#include "fakezk.h"
#include "protocol/commands.h"
#include "protocol/delegation.h"

enum {
	HOSTS_MAX = 4,
	CLIENTS_MAX = 6,
	LOCKS_MAX = 4,
	FOREIGN_MAX = 3,
	MEDDLED_MAX = 256,
	USED_MAX = 4,
	OVERWRITTEN_MAX = 64,
	BELIEFS_MAX = 128,
	REPLACED_MAX = 64,
	SAVED_MAX = 5,
	FORCED_MAX = 64,
	QUEUE_MAX = 6,
	ASK_WORDS = 15,
	ASK_BYTES = 128,
	BALLAST_MAX = 100,
	BALLAST_CONN = CLIENTS_MAX + 1,
};

struct ask {
	enum command command;
	int lock, target;
	bool shared;
	bool reenter;      /* says REENTER */
	bool all;          /* LOCKS of all hosts */
	int64_t wait_ms;   /* -1: no WAIT */
	int64_t lease_ms;  /* of RENEW too; 0: no LEASE */
	int64_t token;     /* 0: none given; of permits: how many */
	bool permits;      /* about the semaphore */
	int64_t limit;     /* of ACQUIRE; of LIMIT: to be set, 0: asked for */
	int slot;          /* LOCK offers it; 0: none */
	unsigned int several; /* MLOCK, MUNLOCK: a bit for each lock; `target`: named backwards */
	int owner;         /* of CLIENT SETINFO; 0: none; below 0: it is CLIENT UNBLOCK */
	uint64_t order;    /* of being handed to the broker */
	int64_t asked_at;
	int protocol;
};

/* A grant as the model sees it. */
struct holding {
	bool held, shared;
	bool lost;         /* void, and the client was not told in a reply or an event that it read */
	bool pushed;       /* the loss was pushed */
	bool by_lease;     /* lost, because its lease ran out */
	bool cut_short;    /* its broker was killed meanwhile: it may be lost for another reason */
	bool meddled;      /* an operator deleted its znode */
	bool vague;        /* read late: it may have been lost since it was made */
	int64_t depth, token, since;
	int64_t lease_until; /* INT64_MAX: none */
};

/* What a client knows of a lock that was delegated to it. */
enum kept_state {
	KEPT_NONE,
	KEPT_FREE,      /* it can take it */
	KEPT_TAKING,    /* it has taken it, and has yet to look whether it may enter */
	KEPT_HELD,
	KEPT_RETURNING, /* it may not, and says UNLOCK before anything else */
};

struct kept {
	enum kept_state state;
	bool shared;
	struct delegation_terms terms;
	uint64_t seen, order; /* the latest generation; of the take */
	int64_t at;           /* of its latest step */
};

/* What a client has of the semaphore. */
struct permits {
	int64_t count;
	int64_t lease_until;     /* INT64_MAX: none */
	bool lost;               /* they are void, and that was not told in a reply or an event that it read */
	bool pushed, by_lease;   /* the loss was pushed; is that of a lease */
	bool cut_short;          /* its broker was killed meanwhile: they may be lost for another reason */
};

/* A wait by ENQUEUE as the model sees it. */
struct wait {
	bool on;
	bool blind;        /* under RESP2 its end is known only once it was read */
	int64_t over_at;   /* when its broker could first see that its time had run out; 0: not yet */
	struct ask ask;
};

/* What a client observes, and was told. */
struct watching {
	bool asked, on, told;
	int64_t token, highest; /* told last; of all */
	int64_t since;
};

/* What the next token must be larger than. */
struct tokens {
	int64_t highest, highest_writer, last;
	bool last_shared;
};

/* Grants made on one znode while the same contender of another host waits, those made in one go counted once. */
struct contended {
	int64_t czxid, waiter, grants;
};

/* A znode whose tokens are being used up, as far as clients have read them. */
struct used {
	int64_t czxid, tokens;
};

/* A znode that an operator deleted. */
struct meddled {
	int64_t czxid, at;
	int64_t behind; /* the one of its own host it waited for; 0: none */
};

enum socket_state { CLIENT_OFF, CLIENT_ON, CLIENT_CLOSING };

struct caller {
	struct host *host;
	uint32_t conn;
	enum socket_state state;
	uint64_t life;
	int protocol;
	uint64_t id;
	bool asking;             /* a request was handed over and is not answered */
	struct ask current;
	struct ask queue[QUEUE_MAX]; /* come in, held back behind it */
	int queued, sent;        /* sent: without an answer, on its way included */
	bool half_closed, wants_pushes, going;
	bool jeopardy;           /* it was told so last, since it last held nothing */
	int owner;               /* as it was told to the broker; 0: none */
	bool auditor;            /* it asks AUDIT and nothing else */
	bool permitted;          /* it asks for permits and nothing else */
	struct permits permits;
	bool asked_page, has_page;
	struct delegation_page page;
	struct kept kept[LOCKS_MAX];
	uint64_t page_turn; /* the latest page that was asked for */
	int64_t unblocked_at;    /* somebody asked for the end of its wait */
	bool done;               /* was granted once more after the faults had stopped */
	struct pipe socket;
	struct holding holding[LOCKS_MAX];
	struct wait wait[LOCKS_MAX];
	struct watching watching[LOCKS_MAX];
	int enqueues_sent[LOCKS_MAX], hellos_sent; /* not answered yet */
};
