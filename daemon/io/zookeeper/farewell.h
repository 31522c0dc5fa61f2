/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a session, sent to the server and received by it. */
#pragma once

#include <stdbool.h>
#include <zookeeper/zookeeper.h>

/*
 * Ends the session and frees the library's handle, whose socket is `fd` (-1: none). It may block for seconds, and may
 * run in another thread. True: the server has received the farewell. `zh` may be NULL.
 */
bool zk_farewell(zhandle_t *zh, int fd);
