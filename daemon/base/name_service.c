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
static int find_user(const char *name, char *text, size_t size, bool *ret_found, uint32_t *ret)
{
	struct passwd entry, *found = NULL;
	int error = getpwnam_r(name, &entry, text, size, &found);

	*ret_found = found != NULL;
	if (found)
		*ret = found->pw_uid;
	return error;
}

static int find_group(const char *name, char *text, size_t size, bool *ret_found, uint32_t *ret)
{
	struct group entry, *found = NULL;
	int error = getgrnam_r(name, &entry, text, size, &found);

	*ret_found = found != NULL;
	if (found)
		*ret = found->gr_gid;
	return error;
}

static int find(int (*in)(const char *name, char *text, size_t size, bool *ret_found, uint32_t *ret), const char *name,
		uint32_t *ret)
{
	int error = ERANGE;
	bool found = false;

	for (size_t size = ENTRY_BYTES; (error == ERANGE || error == EINTR) && size <= ENTRY_BYTES_MAX;) {
		char *text = mem_new(size);

		error = in(name, text, size, &found, ret);
		mem_free(text);
		if (error == ERANGE)
			size *= 4;
	}
	if (found)
		return 0;
	return means_none(error) ? -ENOENT : -error;
}

int name_service_user(const char *name, uint32_t *ret_uid)
{
	return find(find_user, name, ret_uid);
}

int name_service_group(const char *name, uint32_t *ret_gid)
{
	return find(find_group, name, ret_gid);
}
