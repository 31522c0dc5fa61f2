/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the configuration again while the daemon runs, in a worker of its own: a file system can be slow, and a name
 * service that is asked for users can block for minutes. A caller gets the configuration as it is after the call: if
 * somebody asks while it is being read, it is read once more before `done` is called.
 *
 *   idle      -> asked    -> reading: the service manager gets RELOADING=1
 *   reading   -> asked    -> reading, once more after that
 *   reading   -> read     -> idle: `done` is called, then the service manager gets READY=1
 *   reading   -> gives way, when it has taken RELOAD_PATIENCE_NS -> abandoned: `done` is called with an error
 *   abandoned -> asked    -> abandoned, and reading after that
 *   abandoned -> read     -> idle: the configuration is dropped, and the service manager gets READY=1
 *
 * It gives way to a hand-over, or to a stop whose state is kept: the next process reads the configuration anyway.
 */
#pragma once

#include "base/clock.h"
#include "io/conf/conf_file.h"

/* So long a hand-over waits for a configuration that is being read. */
#define RELOAD_PATIENCE_NS (3 * CLOCK_NS_PER_S)

struct notify;
struct reload;
struct secret;
struct watch_base;
struct worker;

/* `read` NULL: there is an error. The configuration may be used until the call returns. */
typedef void reload_done(void *arg, struct conf *read, const char *error);

/*
 * In the worker, after a configuration without an error: all further work that takes long. 0, or -errno and a line in
 * `error`.
 */
typedef int reload_look(void *arg, const struct conf *read, char error[CONF_ERROR_MAX]);

struct reload_conf {
	const struct conf_source *source; /* outlives it */
	reload_look *look;
	reload_done *done;
	void *arg;
};

struct reload *reload_new(struct watch_base *base, struct worker *w, const struct notify *notify,
			  const struct reload_conf *conf);
/* After the worker was stopped, and before the base is freed. Takes NULL. */
void reload_free(struct reload *r);
void reload_ask(struct reload *r);
/* It is being read; `done` will be called. */
bool reload_is_reading(const struct reload *r);
/* Another process is to take over: if it has been read for long enough, that is given up, and `done` is called. */
void reload_give_way(struct reload *r);
/* During `done`, without an error: the secret that the configuration names (secret.h), as it is now. 0 or -errno. */
int reload_secret(const struct reload *r, const struct secret **ret);
/* Nothing is sent to the service manager any longer. */
void reload_mute(struct reload *r);
