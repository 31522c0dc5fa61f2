/* SPDX-License-Identifier: Apache-2.0 */
/* A start with the state of another process: of one that hands over, or of one that left it with the service manager. */
#pragma once

#include <stdbool.h>

#include "io/base/parcel.h"

struct conf_source;
struct daemon;

/*
 * d->takeover hands over. Until it has committed, nothing that it passed on is touched: this process may only vanish.
 * Returns when it has served: the exit status.
 */
int adopt_handed_over(struct daemon *d, const struct conf_source *source);
/* True: the process before this one left its state, and it is of this daemon. */
bool adopt_is_kept(struct daemon *d, struct parcel *ret);
/*
 * Serves with that. There is no way back: if it cannot be used, this process exits, and the service manager starts the
 * daemon once more, without it. The exit status.
 */
int adopt_kept(struct daemon *d, const struct conf_source *source, struct parcel *p);
