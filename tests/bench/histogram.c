/* SPDX-License-Identifier: Apache-2.0 */
#include "histogram.h"

/* What is longer than the last class is counted there. */
static int class_of(uint64_t ns)
{
	int power, class;

	if (ns < HISTOGRAM_PARTS)
		return (int)ns;
	power = 63 - __builtin_clzll(ns);
	class = (power - 5) * HISTOGRAM_PARTS + (int)(ns >> (power - 6)) - HISTOGRAM_PARTS;
	return class < HISTOGRAM_CLASSES ? class : HISTOGRAM_CLASSES - 1;
}

static double middle_of(int class)
{
	int power = class / HISTOGRAM_PARTS + 5;
	double width = class < HISTOGRAM_PARTS ? 1 : (double)(UINT64_C(1) << (power - 6));

	if (class < HISTOGRAM_PARTS)
		return class + 0.5;
	return (HISTOGRAM_PARTS + class % HISTOGRAM_PARTS + 0.5) * width;
}

void histogram_add(struct histogram *h, int64_t ns)
{
	h->total++;
	h->count[class_of((uint64_t)(ns < 0 ? 0 : ns))]++;
	if (ns > h->longest_ns)
		h->longest_ns = ns;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	int i;

	into->total += from->total;
	if (from->longest_ns > into->longest_ns)
		into->longest_ns = from->longest_ns;
	for (i = 0; i < HISTOGRAM_CLASSES; i++)
		into->count[i] += from->count[i];
}

double histogram_percentile_ns(const struct histogram *h, double part)
{
	uint64_t seen = 0;
	int i;

	for (i = 0; i < HISTOGRAM_CLASSES; i++) {
		seen += h->count[i];
		if (h->total && (double)seen >= part * (double)h->total)
			return middle_of(i);
	}
	return 0;
}
