/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the commands that list things. */
#pragma once

#include "protocol/bytes.h"

struct client;

/* LOCKS and CLIENT LIST. */
void info_locks(struct client *c, const struct slice *pattern);
void info_clients(struct client *c);
