/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Logs a line of ZooKeeper's C client, without the number of a session, and for debugging only: the library's log has no
 * context, calls a port that refuses a "broken pipe", and repeats itself at every attempt. What matters is reported as a
 * trouble instead. The library also logs from the thread that ends a session.
 */
void zk_client_log(const char *message);
