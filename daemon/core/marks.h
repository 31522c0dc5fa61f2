/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks: a snapshot has grants, requests and observers in the order of the lists of their locks, and each has a mark, its
 * place among all in the order of the lists of the clients. A restored broker gets that order from the marks.
 */
#pragma once

#include "core/lock/locks.h"

struct marked_list {
	struct marked {
		uint32_t mark;
		void *what;
	} *list;
	size_t count, cap;
	void **sorted; /* by mark, of which the first is 1 */
};

struct marks {
	struct marked_list grants, requests, observers;
	bool sorted; /* all were noted */
};

/* Marks what clients have, before a snapshot is written. */
void marks_set(const struct locks *locks);
/* What was read with that mark, behind what was read before; returns it. */
void *marks_note(struct marked_list *all, uint32_t mark, void *what);
/* All are noted: the clients' lists get their order. Once is enough. False: they are not marked from 1 on, each once. */
bool marks_sort(struct marks *m);
void marks_forget(struct marks *m);
