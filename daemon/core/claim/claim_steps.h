/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a claim that are shared by claim.c (commands to a claim) and claim_answers.c (answers of ZooKeeper). */
#pragma once

#include "base/flight.h"
#include "core/claim/claim.h"

void claim_set_name(struct claim *c, struct slice name);
void claim_note(const struct claim *c, enum flight_kind kind); /* for the flight recorder */
void claim_send_join(struct claim *c);                         /* sends the create, and the list of the queue */
void claim_pred_gone(struct claim *c);                         /* WAITING: the predecessor's znode is deleted */
/* `gone`, a claim of this host, was deleted by the operation `deleted`: this host's claims that waited for it go on. */
void claim_follow_all(const struct claim *gone, uint64_t deleted);
bool claim_is_held_alone(const struct directory *d); /* the only claim of the directory is held */
