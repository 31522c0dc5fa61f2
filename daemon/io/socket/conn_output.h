/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written to a connection: replies, pushes, and the end. It is queued, and written when the turn settles. What is
 * long is written in parts of CONN_PART_BYTES, each in a turn of its user, as long as the socket takes them.
 */
#pragma once

#include "io/socket/conn.h"

/* `lazy`: it may wait for the next output, but at most CONN_LAZY_MAX bytes do. */
void conn_reply(struct conn *c, struct slice text, bool lazy);
/* The reply is `text` from `at` on; it is copied only if other output is unwritten. `text` is empty afterwards. */
void conn_reply_whole(struct conn *c, struct bytes *text, size_t at);
/* The reply to DELEGATE: the file descriptor of the page goes along. */
void conn_reply_page(struct conn *c, struct slice text);
/* `report`: EVENT_CLIENT_WRITTEN follows when it has been written. */
void conn_push(struct conn *c, struct slice text, bool report);
/* Whatever is due to it. */
void conn_queue(struct conn *c, struct slice text);
/* It is closed when what is queued is written. */
void conn_close(struct conn *c);
/* A reply that waits for the next output waits no longer. */
void conn_hurry(struct conn *c);
/* One that may wait for the next one must not keep that next one from being requested. */
void conn_hurry_lazy(struct conn *c);
void conn_flush(struct conn *c); /* writes a part of it */
/* Writes the queued output of all. */
void conn_flush_all(struct conn_env *env);
/* What is unwritten is of no use any longer. */
void conn_drop_output(struct conn *c);
