/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks: a snapshot has grants, requests and observers in the order of their locks' lists. Each of them has a mark: its
 * number in the order of the clients' lists. A restored broker puts the clients' lists in order by the marks.
 */
#pragma once

#include "core/lock/locks.h"

struct marked_list {
	struct marked {
		uint32_t mark;
		void *what;
	} *list;
	size_t count, cap;
	void **sorted; /* by mark; the first mark is 1 */
};

struct marks {
	struct marked_list grants, requests, observers;
	bool sorted; /* marks_sort() has run */
};

/* Sets the marks of all grants, requests and observers; to be called before a snapshot is written. */
void marks_set(const struct locks *locks);
/* Appends what was read with that mark; returns `what`. */
void *marks_note(struct marked_list *all, uint32_t mark, void *what);
/* All are noted: puts the clients' lists in order, the first time. False: the marks are not 1, 2, ..., each once. */
bool marks_sort(struct marks *m);
void marks_forget(struct marks *m);
