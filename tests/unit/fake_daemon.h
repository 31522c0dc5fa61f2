/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon of a page, for tests of the library: it grants whatever it is asked for, delegates what is offered a slot, and
 * takes back what the test says. It answers one connection after another in a thread of its own; all of its state is looked
 * at between two requests, under its mutex.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/delegation.h"

enum { NAMES = 100, FAR_NS = 1000000000 };

struct fake_lock {
	char name[32];
	unsigned slot; /* delegated there, or held there until UNLOCK; 0: none */
	bool delegated, lost;
	int depth;
};

struct fake_daemon {
	char dir[32], socket[64], session_path[64];
	int listener;
	_Atomic int connection;
	pthread_t thread;
	pthread_mutex_t mutex;
	bool offers, refuses, no_slots;
	_Atomic int requests, asked; /* all requests that it knows; DELEGATE */
	struct delegation_page *page;
	int page_fd;
	struct session_page *session;
	struct session_view view;
	struct fake_lock locks[NAMES];
	uint64_t generation;
	int64_t token;
};

extern struct fake_daemon fake;

/* Of each test. */
int fake_begin(void **state);
int fake_end(void **state);
struct fake_lock *fake_lock_of(const char *name); /* it is made if need be */
void fake_recall(struct fake_lock *lock);         /* somebody else wants it: a free one is nobody's then */
void fake_lose(struct fake_lock *lock);           /* its holder has lost it */
void fake_prove(uint64_t epoch, int64_t ns);      /* the session page says so, from now on */
/* Between two requests. */
void fake_with(void (*act)(struct fake_lock *), const char *name);
