/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole core, with hostile clients, hostile znodes and all faults: a world of the simulator (tests/sim/anything.h),
 * which looks into the brokers after every event. The input says which one, and chooses what happens in it, a byte for each
 * choice; when it has ended, the seed chooses alone. A choice of 0 is what `sim --seed` makes.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "tests/sim/world.h"

static const char *const mixes[] = {
	"anything standalone", "kills, anything standalone", "snapshots, anything standalone", "anything",
	"kills, anything",     "snapshots, anything",
};

enum { HEAD = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally stats = { .margin_permille = 1000 };
	struct world *w;

	if (size < HEAD)
		return 0;
	w = calloc(1, sizeof(*w));
	assert(w);
	world_init(w, data[0], mixes[data[1] % (sizeof(mixes) / sizeof(mixes[0]))], &stats);
	w->rng.chosen = data + HEAD;
	w->rng.chosen_left = size - HEAD;
	if (setjmp(w->failed) == 0) {
		world_run(w);
	} else {
		fprintf(stderr, "%s: %s\n", w->mix->name, w->failure);
		abort();
	}
	world_deinit(w);
	free(w);
	return 0;
}
