/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core, with hostile clients, hostile znodes and all faults: a world of the simulator (tests/sim/anything.h), which
 * looks into the brokers after every event. The first byte of an input is the world's seed, the second one its mix, and
 * each further byte changes one choice; 0 leaves the choice to the seed. After the last byte all clients hang up, and the
 * world ends: worlds that come to rest are for `make sim`. So an input takes as long as its bytes, and many are tried.
 */
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
	static struct world world;
	struct tally stats = { .margin_permille = 1000 };
	struct world *w = &world;

	if (size < HEAD)
		return 0;
	memset(w, 0, sizeof(*w));
	world_init(w, data[0], mixes[data[1] % (sizeof(mixes) / sizeof(mixes[0]))], &stats);
	w->rng.chosen = data + HEAD;
	w->rng.chosen_left = size - HEAD;
	if (setjmp(w->failed) == 0) {
		world_run_chosen(w);
	} else {
		fprintf(stderr, "%s: %s\n", w->mix->name, w->failure);
		abort();
	}
	world_deinit(w);
	return 0;
}
