/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop carries out the effects of the broker, in turns. One turn:
 *
 *     libevent says what is ready; an adapter that has received something feeds it to the broker (base/feed.h); the replies
 *     for a client are written when everything that this client has sent is consumed
 *     -> settle: connections are written, closed and freed in one place; ZooKeeper's socket is armed again
 *     -> the timer is set for broker_deadline()
 *     -> if another process is ready to take over, everything is handed over to it
 */
#pragma once

#include <stdbool.h>

struct feed;
struct handover;
struct hold_log;
struct loop;
struct notify;
struct keep;
struct keeper;
struct page;
struct ledger_file;
struct lifelines;
struct memory_watch;
struct reload;
struct saved;
struct server;
struct tokens;
struct zk_former;
struct zookeeper;

/* The adapters that carry out the effects. All must outlive the loop. */
struct loop_adapters {
	struct server *server;
	struct lifelines *lifelines;
	struct reload *reload;
	struct keep *keep;
	struct keeper *keeper; /* NULL: there is none */
	const struct notify *notify;
	struct page *page;
	struct handover *handover;
	struct hold_log *hold_log;
	struct saved *saved;
	struct memory_watch *memory;
	struct ledger_file *ledger_file; /* NULL: the broker keeps no ledger */
	struct tokens *tokens; /* NULL unless standalone */
	/* NULL when standalone. */
	struct zookeeper *zookeeper;
	struct zk_former *former;
};

/* From here on events may be fed. */
struct loop *loop_new(struct feed *feed, const struct loop_adapters *adapters);
/* Takes NULL. */
void loop_free(struct loop *l);

struct loop_end {
	bool close_session; /* nothing is held, so the session may end at once */
	bool handed_over;   /* another process serves: this process only exits, by handover_exit() */
	bool refused;       /* starting the daemon again would not help */
};

/* Turns until the broker has stopped, or another process has taken over. */
struct loop_end loop_run(struct loop *l);
