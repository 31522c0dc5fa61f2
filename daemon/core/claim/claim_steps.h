/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a claim that claim.c takes when it is told to, and claim_answers.c when ZooKeeper has answered. */
#pragma once

#include "base/flight.h"
#include "core/claim/claim.h"

void claim_set_name(struct claim *c, struct slice name);
void claim_note(const struct claim *c, enum flight_kind kind); /* for the flight recorder */
void claim_send_join(struct claim *c);                         /* the create, and the list that shows its place */
void claim_pred_gone(struct claim *c);                         /* WAITING: the predecessor's znode is deleted */
/* That claim of this host was deleted by that operation: claims of the host that waited for it go on. */
void claim_follow_all(const struct claim *gone, uint64_t deleted);
bool claim_is_held_alone(const struct directory *d); /* one is held here, and no other claim is there */
