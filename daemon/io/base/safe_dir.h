/* SPDX-License-Identifier: Apache-2.0 */
/* Whether nobody but the daemon's user and root can put files into a directory, or replace files in it. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* The mode bit of a file by which systemd-tmpfiles does not remove it because it is old (as in $XDG_RUNTIME_DIR). */
#define NOT_AGED S_ISVTX

/* The sticky bit keeps others from replacing files that are not their own. */
static inline bool safe_dir_is(const struct stat *st)
{
	return (st->st_uid == geteuid() || st->st_uid == 0) &&
	       (!(st->st_mode & (S_IWGRP | S_IWOTH)) || (st->st_mode & S_ISVTX));
}
