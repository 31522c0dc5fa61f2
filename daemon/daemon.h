/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon: its configuration, and its parts as they are made. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/port/conf.h"
#include "core/session/former.h"
#include "io/base/keeper.h"
#include "io/base/parcel.h"
#include "io/conf/conf.h"
#include "io/files/saved.h"
#include "io/handover/identity.h"
#include "io/notify.h"
#include "io/socket/listen.h"
#include "io/socket/server.h"
#include "io/zookeeper/resolve.h"
#include "io/zookeeper/secret.h"
#include "protocol/session_page.h"

struct options;

/* The keys of the configuration as text, with the values that count, for CONFIG GET. */
struct settings {
	char *text; /* names and values, each with its zero */
	struct broker_setting *list;
	size_t count;
};

void settings_free(struct settings *s);

/* Where a socket is to be, and where it is. The keeper has copies of it and of its lock file, by these numbers. */
struct daemon_socket {
	struct listen_address address;
	struct listener listener;
	uint64_t role, lock_role;
};

struct daemon {
	struct conf conf;
	struct broker_conf used[2];  /* in turn: the broker's present one, and an older one that may point to freed memory */
	struct settings settings[2]; /* likewise */
	bool turn;
	size_t clients_max, pages_max; /* for which tables were made; for which there are descriptors beside those */
	char boot_id[64];
	int pid_fd; /* locked while the daemon runs */
	struct secret *secret; /* for ZooKeeper; NULL: there is none */
	char operator_path[CONF_ERROR_MAX];
	struct page *page;
	int conf_fd, secret_fd; /* configuration and secret in use, as files for the next process; -1: none */
	struct bytes identity; /* which a later process must share with this process */
	struct saved *saved;
	struct life *life; /* NULL with ZooKeeper */
	struct zk_former *former; /* NULL in standalone mode */
	struct broker_former formers[FORMERS_MAX];
	char page_path[PATH_MAX];
	uint8_t page_id[SESSION_PAGE_ID_BYTES];
	char page_id_text[SESSION_PAGE_ID_CHARS + 1];
	struct daemon_socket clients, operators;
	struct notify notify;
	struct feed *feed;
	struct ledger_file *ledger_file; /* NULL: the file system has no room */
	struct loop *loop;
	struct hold_log *hold_log;
	struct worker *worker, *reader, *resolver; /* reader, resolver: reading and looking up may block for long */
	struct server *server;
	struct lifelines *lifelines;
	struct memory_watch *memory;
	struct zookeeper *zookeeper;
	struct tokens *tokens;
	struct signals *signals;
	struct reload *reload;
	struct resolved found; /* the servers of the configuration that is being read: the reader's during that time */
	struct watchdog *watchdog;
	struct program *program;
	struct keeper *keeper;     /* NULL: this process was started without one */
	struct keeper_past past;   /* the keeper's copies for a worker that was killed */
	struct takeover *takeover; /* NULL: no process handed over to this process */
	struct handover *handover;
	struct keep *keep;
	struct removed *removed;
	unsigned int files_lost; /* files that are gone for good (removed.h) */
	bool stopping;
	struct flight_ring *flight; /* NULL: log.ledger_file_bytes = 0 */
	/* The latest signal to stop: */
	struct {
		int number; /* 0: there was none */
		pid_t sender;
		bool directly;    /* to this process; otherwise another one has passed it on */
		int64_t until_ns; /* somebody who signals all processes of the service has done so before */
	} told;
};

/*
 * The steps that each way to begin needs: the log, the service manager's address, the users and files that the
 * configuration only names. d->conf, d->program and d->takeover are there before. 0 or -errno: the configuration cannot
 * be used, and everything was said; -EAGAIN: a group cannot be looked up now.
 */
int daemon_prepare(struct daemon *d, const struct options *options);
bool daemon_follows_crash(const struct daemon *d); /* a worker was killed, and its configuration goes on */
struct identity daemon_identity(const struct daemon *d);
int daemon_read_named(struct daemon *d); /* a group, a secret: 0 or -errno as above */
void daemon_warn(const struct conf *conf); /* of each setting that is valid and hardly meant */
/*
 * Copies d->conf.broker to where the broker has it in the present turn, with as many clients as can be served, and makes its
 * settings anew. The broker sees a change of d->conf.broker only after this.
 */
const struct broker_conf *daemon_use(struct daemon *d);
struct server_conf daemon_server_conf(const struct daemon *d); /* likewise */
/* Has the keeper hold it for the next process: the configuration, whenever it is another one; the secret, once. */
void daemon_keep_conf(struct daemon *d);
void daemon_keep_secret(struct daemon *d);
/* From here on d->saved counts, and no earlier file; if it gets no name, that is logged, and none does. */
void daemon_publish_saved(const struct daemon *d);
struct saved_conf daemon_saved_conf(const struct daemon *d);
