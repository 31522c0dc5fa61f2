/* SPDX-License-Identifier: Apache-2.0 */
#include "base/name_service.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>

#include "base/mem.h"

/* A group has the names of all its members. */
enum { ENTRY_BYTES = 4096, ENTRY_BYTES_MAX = 64 << 20 };

/* What a service may answer when it does not know a name, besides no entry: see getpwnam_r(3). */
static bool means_none(int error)
{
	return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
}

/* An errno, 0 also if there is none. */
static int ask(enum name_kind kind, const char *name, char *text, size_t size, bool *ret_found, uint32_t *ret)
{
	struct passwd user, *found_user = NULL;
	struct group group, *found_group = NULL;
	int error = kind == NAME_GROUP ? getgrnam_r(name, &group, text, size, &found_group)
				       : getpwnam_r(name, &user, text, size, &found_user);

	*ret_found = found_user || found_group;
	if (*ret_found)
		*ret = kind == NAME_GROUP ? group.gr_gid : user.pw_uid;
	return error;
}

int name_service_find(enum name_kind kind, const char *name, uint32_t *ret)
{
	int error = ERANGE;
	bool found = false;

	for (size_t size = ENTRY_BYTES; (error == ERANGE || error == EINTR) && size <= ENTRY_BYTES_MAX;) {
		char *text = mem_new(size);

		error = ask(kind, name, text, size, &found, ret);
		mem_free(text);
		if (error == ERANGE)
			size *= 4;
	}
	if (found)
		return 0;
	return means_none(error) ? -ENOENT : -error;
}
