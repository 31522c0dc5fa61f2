/*
 * <root>/.hosts/<host>: the host's own znode, ephemeral. It announces this daemon to the others (version, pid, boot,
 * start, tick), writing it is the heartbeat, and its name guards against a second daemon of the same name.
 */
#pragma once

#include "core/event.h"
#include "core/operation.h"

struct broker;

/* Creates what stands above a path, each level that may be missing. */
void announce_above(struct broker *b, struct slice path);
/* Creates what stands above the host's own znode: when a session begins, and when one turned out to be missing. */
void announce_parents(struct broker *b);
/* Makes the znode, or writes it: a write that proves the session when it is answered. */
void announce_beat(struct broker *b);
/* The answers of PATH, BEAT and RIVAL operations. */
void announce_answered(struct broker *b, enum operation_kind kind, const struct event *event);
