/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies, counted in classes of 1/64 of a power of two: each within 1.6 % of what was measured. */
#pragma once

#include <stdint.h>

enum { HISTOGRAM_PARTS = 64, HISTOGRAM_CLASSES = 36 * HISTOGRAM_PARTS };

struct histogram {
	uint64_t total;
	int64_t longest_ns;
	uint64_t count[HISTOGRAM_CLASSES];
};

void histogram_add(struct histogram *h, int64_t ns);
void histogram_merge(struct histogram *into, const struct histogram *from);
/* The middle of the class below which that part (0..1) of all lies; 0 when there are none. */
double histogram_percentile_ns(const struct histogram *h, double part);
