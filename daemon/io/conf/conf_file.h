/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the configuration. Beside FILE, the directory FILE.d may have drop-ins: NN-NAME.conf, two digits first, read in
 * the order of their bytes after FILE. A key of a later file takes the place of one of an earlier; sections of prefixes add
 * up. Each file is read to its end whatever is wrong with it, so that all errors are told at once.
 *
 * - FILE and its drop-ins have to belong to root or the daemon's user, and nobody else may be able to write to them, nor to
 *   FILE.d: they say who may do what. Of FILE that holds if it is a regular file.
 * - In FILE.d, what is hidden and what does not end with .conf (an editor's backup, a README) is none of ours. What ends so
 *   but has no digits is an error, because its author expects that it counts.
 */
#pragma once

#include "io/conf/conf.h"

enum {
	CONF_FILE_BYTES_MAX = 1048576, /* of one file */
};

/* One file. 0, or -errno and a line for each error appended to `error`. */
int conf_read(struct conf *conf, const char *file, char error[CONF_ERROR_MAX]);
/* The drop-ins of `file`, which itself need not exist. */
int conf_read_drop_ins(struct conf *conf, const char *file, char error[CONF_ERROR_MAX]);
