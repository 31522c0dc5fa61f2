/* SPDX-License-Identifier: Apache-2.0 */
/* CLAIM_FOREACH visits all claims of a directory. Those that are LEAVING come last. */
#pragma once

#include "core/claim/claim.h"
#include "core/claim/directory.h"

#define CLAIM_FOREACH(c, d) for ((c) = claim_first(d); (c); (c) = claim_after(c))

static inline struct claim *claim_first(const struct directory *d)
{
	if (d->claim)
		return d->claim;
	return TAILQ_EMPTY(&d->slots) ? TAILQ_FIRST(&d->leaving) : TAILQ_FIRST(&d->slots);
}

static inline struct claim *claim_after(const struct claim *c)
{
	const struct directory *d = c->directory;

	if (c == d->claim && d->next)
		return d->next;
	if (c == d->claim || c == d->next)
		return TAILQ_FIRST(&d->leaving);
	return TAILQ_NEXT(c, link) || c->state == CLAIM_LEAVING ? TAILQ_NEXT(c, link) : TAILQ_FIRST(&d->leaving);
}
