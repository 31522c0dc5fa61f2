/* SPDX-License-Identifier: Apache-2.0 */
/* From a member that is embedded in a struct to that struct. */
#pragma once

#include <stddef.h>

#define container_of(member_ptr, type, member) ((type *)((char *)(member_ptr) - offsetof(type, member)))
