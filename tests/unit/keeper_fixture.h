/* SPDX-License-Identifier: Apache-2.0 */
/* A keeper's end of an exchange, and the test as its worker: it says something there, and looks at what it is told. */
#pragma once

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "io/base/keeper.h"
#include "keeper/descriptors.h"
#include "keeper/exchange.h"

enum { ROOM = 300 };

static struct exchange x;
static int worker; /* its end */

static inline int set_up(void **state)
{
	int fd;

	x = (struct exchange){ .descriptors = descriptors_new(ROOM), .fd = -1 };
	if (keeper_message_pair(&fd, &worker) < 0)
		return -1;
	exchange_begin(&x, fd, 0);
	return 0;
}

static inline int tear_down(void **state)
{
	descriptors_free(x.descriptors);
	if (x.fd >= 0)
		close(x.fd);
	if (worker >= 0)
		close(worker);
	return 0;
}

#define WITH_WORKER(name) TEST_WITH(name, set_up, tear_down)

static inline int some_fd(void)
{
	int fd = memfd_create("something", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* The worker says that; a descriptor for each number of a KEEP. */
static inline void says(enum keeper_kind kind, uint64_t first, uint32_t count)
{
	struct keeper_message m = { .kind = kind, .count = count };
	int fds[KEEPER_BATCH] = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		m.numbers[i] = first + i;
		fds[i] = kind == KEEPER_KEEP ? some_fd() : -1;
	}
	assert_int_equal(keeper_message_send(worker, &m, kind == KEEPER_KEEP ? fds : NULL), 0);
	for (uint32_t i = 0; kind == KEEPER_KEEP && i < count; i++)
		close(fds[i]);
	assert_true(exchange_turn(&x));
}

/* What the worker is told next; 0: nothing. Descriptors are closed. */
static inline uint32_t told(struct keeper_message *ret)
{
	struct keeper_message_with with;
	int rc = keeper_message_receive(worker, ret, &with);

	if (rc == -EAGAIN)
		return 0;
	assert_int_equal(rc, 0);
	if (ret->kind == KEEPER_BACK)
		assert_int_equal(with.fd_count, ret->count);
	while (with.fd_count)
		close(with.fds[--with.fd_count]);
	return ret->kind;
}

static inline void begun(void)
{
	struct keeper_message m;

	assert_true(exchange_turn(&x));
	assert_int_equal(told(&m), KEEPER_BEGIN);
}
