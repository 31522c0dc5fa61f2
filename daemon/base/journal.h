/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log as entries of the journal: each line is one datagram to systemd-journald in its native protocol, with the line as
 * MESSAGE, and each of its fields as LOCKBROKER_<FIELD>. Every value has its length in front, so no text of somebody's can
 * look like another field.
 *
 *     a line       -> sent; or, while the journal takes none (it is stopped, restarts, or its queue is full), it waits, and
 *                     all that come after it
 *     lines wait   -> sent in order by journal_go_on(), or by the next line
 *     no room      -> lines that may be dropped (grants and releases) make room, oldest first, and are counted; a line for
 *                     which there is still no room is left out, and counted
 *     all is sent  -> one line tells how many were left out
 *
 * Lines may come from several threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/slice.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
/* Bytes of datagrams that wait, at most. */
enum { JOURNAL_WAITING_MAX = 256 * 1024 };
/* How often waiting lines are tried again. */
#define JOURNAL_RETRY_NS (INT64_C(100) * 1000000)

/* $JOURNAL_STREAM names the device and the inode of stderr: a value that was only inherited does not count. */
bool journal_is_stderr(void);
/*
 * Lines go to the socket at that path from now on. $LOCKBROKER_LOG_IDENTIFIER is their identifier, which distinguishes the
 * daemons of a host; without it lockbrokerd. 0, or -errno: there can be no socket.
 */
int journal_open(const char *path);
/* Sends the waiting lines as far as the journal takes them, and the rest to stderr as "<4>line"; this never waits. */
void journal_close(void);
bool journal_is_open(void);
/*
 * An entry. `id`: its MESSAGE_ID, in hexadecimal; NULL: none. `priority` is one of syslog(3); `line` the sentence with its
 * fields, as log.h has them; `fields` the fields alone, which become fields of the entry. `may_be_dropped`: it makes room
 * for others.
 */
void journal_line(const char *id, int priority, struct slice line, struct slice fields, bool may_be_dropped);
/* Something waits: call journal_go_on() in JOURNAL_RETRY_NS. */
bool journal_waits(void);
void journal_go_on(void);
