/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/unread.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/queue.h"
#include "io/base/feed.h"
#include "io/base/parcel.h"
#include "io/socket/disposer.h"
#include "io/socket/socket_pools.h"

bool unread_is(int fd)
{
	int bytes = 0;

	return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

void unread_add(struct unread_list *list, int fd, struct account *account)
{
	struct unread *u = mem_new(sizeof(*u));

	u->fd = fd;
	charge_force(&u->connection, account, SOCKET_CONNECTIONS, 1);
	charge_force(&u->page, account, SOCKET_PAGES, 1);
	TAILQ_INSERT_TAIL(list, u, link);
	/* The keeper, or the process of a hand-over, may have the socket, too: then close() would not end the connection. */
	shutdown(fd, SHUT_RDWR);
}

static void end(struct unread_list *list, struct unread *u, struct disposer *disposer)
{
	TAILQ_REMOVE(list, u, link);
	disposer_take(disposer, u->fd, u->connection.account);
	charge_give_back(&u->connection, SOCKET_CONNECTIONS);
	charge_give_back(&u->page, SOCKET_PAGES);
	mem_free(u);
}

void unread_look(struct unread_list *list, struct disposer *disposer, struct feed *feed, int64_t until_ns)
{
	const struct unread *last = TAILQ_LAST(list, unread_list);
	struct unread *u;
	bool more = last;

	while (more && feed_now(feed) < until_ns) {
		u = TAILQ_FIRST(list);
		more = u != last;
		if (!unread_is(u->fd)) {
			end(list, u, disposer);
			continue;
		}
		TAILQ_REMOVE(list, u, link);
		TAILQ_INSERT_TAIL(list, u, link);
	}
}

void unread_free(struct unread_list *list, struct disposer *disposer)
{
	struct unread *u;

	while ((u = TAILQ_FIRST(list)))
		end(list, u, disposer);
}

void unread_pack(const struct unread_list *list, struct parcel *p)
{
	const struct unread *u;

	TAILQ_FOREACH(u, list, link) {
		parcel_begin(p, "unread");
		parcel_fd(p, "fd", u->fd);
		parcel_int(p, "uid", u->connection.account->uid);
		parcel_text(p, "unit", slice_of(u->connection.account->unit));
		parcel_end(p);
	}
}

bool unread_unpack(struct unread_list *list, struct accounts *accounts, struct parcel *p, const struct parcel_record *r)
{
	struct slice unit = parcel_get_text(r, "unit");
	int fd = parcel_take_fd(p, r, "fd");
	struct account *account;

	if (fd < 0)
		return false;
	account = account_enter(accounts, (uint32_t)parcel_get_int(r, "uid"), unit.data, unit.len);
	unread_add(list, fd, account);
	account_leave(account);
	return true;
}
