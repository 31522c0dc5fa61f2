/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping: new requests are granted nothing, waiting requests fail, and holders are asked to release. It ends when
 * nothing is held any longer, or when stop_timeout is over.
 */
#pragma once

#include <stdbool.h>

struct broker;

void drain(struct broker *b);
/* The same, because another daemon has the name: a restart would not help. */
void drain_refuse(struct broker *b);
/* `close_session`: nothing is held. */
void drain_end(struct broker *b, bool close_session);
