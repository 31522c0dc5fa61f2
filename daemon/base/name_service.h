/* SPDX-License-Identifier: Apache-2.0 */
/* Users and groups by name, as the name service of this host knows them. It may be remote: this may block. */
#pragma once

#include <stdint.h>

/*
 * 0; -ENOENT: there is none of that name. Another -errno: that cannot be found out now, but may be later. May be called
 * in any thread.
 */
int name_service_user(const char *name, uint32_t *ret_uid);
int name_service_group(const char *name, uint32_t *ret_gid);
