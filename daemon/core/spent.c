#include "core/spent.h"

#include "core/lock.h"

void spent_follow(struct lock *lock)
{
	struct claim *c = lock->claim;

	lock->claim = lock->next;
	lock->next = NULL;
	c->state = CLAIM_LEAVING;
	c->spent = c->withheld = true;
	TAILQ_INSERT_TAIL(&lock->leaving, c, link);
	claim_held(lock->claim);
}

void spent_release(struct lock *lock)
{
	struct claim *c;

	TAILQ_FOREACH(c, &lock->leaving, link) {
		if (!c->withheld)
			continue;
		c->withheld = false;
		claim_send_delete(c);
	}
}

size_t spent_count(const struct lock *lock)
{
	const struct claim *c;
	size_t count = 0;

	TAILQ_FOREACH(c, &lock->leaving, link)
		count += c->spent && (c->withheld || c->leave_op);
	return count;
}

bool spent_keeps_out(const struct lock *lock, struct slice name)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &lock->leaving, link)
		if (c->withheld && slice_eq(name, slice_of(c->name)))
			return true;
	return lock->claim && slice_eq(name, slice_of(lock->claim->name));
}
