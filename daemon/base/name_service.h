/* SPDX-License-Identifier: Apache-2.0 */
/* Users and groups by name, as the name service of this host knows them. It may be remote: this may block. */
#pragma once

#include <stdint.h>

enum name_kind { NAME_USER, NAME_GROUP };

/*
 * The number of a user, or of a group. 0; -ENOENT: there is none of that name. Another -errno: that cannot be found out now,
 * but may be later. May be called in any thread.
 */
int name_service_find(enum name_kind kind, const char *name, uint32_t *ret);
