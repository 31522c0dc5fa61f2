/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping: new requests are granted nothing, waiting requests fail, and holders are asked to release. It ends when
 * nothing is held any longer, or when stop_timeout is over.
 *
 * A bearer (lock/bearer.h) cannot be asked, and is not waited for. If some hold something at the end, the session stays:
 * their znodes keep others out until it times out, and the next daemon of the host ends it no earlier than the last proof
 * (io/files/saved.h). All other znodes have to be deleted before, if ZooKeeper can be reached: nobody waits for them longer
 * than now.
 */
#pragma once

#include <stdbool.h>

struct broker;

void drain(struct broker *b);
/* The same, because another daemon has the name: a restart would not help. */
void drain_refuse(struct broker *b);
/* Nobody who can be asked holds anything any longer. */
bool drain_is_over(const struct broker *b);
/* stop_timeout is over: the drain ends now; or at the end of this event, if nothing is held. */
void drain_due(struct broker *b);
/* `close_session`: nothing is held. */
void drain_end(struct broker *b, bool close_session);
