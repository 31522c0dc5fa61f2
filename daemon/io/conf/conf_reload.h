/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the configuration comes from, and how another one takes the place of that in use while the daemon runs. A key
 * either may change (conf_key.reloads), or keeps its value until the daemon is started again.
 */
#pragma once

#include <stdbool.h>

#include "io/conf/conf.h"

/* What a command line says of it. */
struct conf_source {
	const char *file, *default_file; /* `file` NULL: the default one, if it exists; either with its drop-ins */
	char *const *overrides; /* after the file, in order */
	int override_count;
	bool standalone;
	bool kept; /* the file is what conf_keep() wrote */
};

/*
 * 0, or -errno with a line in `error` for each error: then there is nothing to free. Values are checked against each other
 * once each of them is right. -EAGAIN: it may be right, but users or groups that it names cannot be looked up now. May be
 * called in any thread.
 */
int conf_load(struct conf *ret, const struct conf_source *source, char error[CONF_ERROR_MAX]);

/* A sentence about a key that differs; `waits`: for a restart. */
typedef void conf_tell(void *arg, bool waits, const char *sentence);

/*
 * `conf` gets the values of `read` for the keys that may change, and each key that differs is told. 0; or -errno with a
 * sentence if they do not fit to those that stay: then nothing changes, and nothing is told. Strings, other rules of access
 * and numbers of users go over to `conf`, and those that counted before to `read`.
 */
int conf_take(struct conf *conf, struct conf *read, bool standalone, conf_tell *tell, void *arg,
	      char error[CONF_ERROR_MAX]);
