/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a session, said to the server and heard by it. */
#pragma once

#include <stdbool.h>
#include <zookeeper/zookeeper.h>

/*
 * Ends the session and frees the library's handle, whose socket is `fd`, -1: it has none. May block for seconds, and
 * may run in a thread of its own. True: the server has heard it. `zh` may be NULL.
 */
bool zk_farewell(zhandle_t *zh, int fd);
