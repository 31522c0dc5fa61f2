/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/timeslice.h"

#include "tests/unit/unit.h"
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As sched_getattr(2) fills it. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static struct attributes look(void)
{
	struct attributes a = { 0 };

	assert_int_equal(syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0), 0);
	return a;
}

TEST(slices_are_short_and_all_else_stays)
{
	struct attributes before, after;

	assert_int_equal(setpriority(PRIO_PROCESS, 0, 5), 0);
	before = look();
	timeslice_setup();
	after = look();
	assert_int_equal(after.policy, SCHED_OTHER);
	assert_int_equal(after.nice, 5);
	/* An older kernel has no slices to be set. */
	assert_true(after.runtime == TIMESLICE_NS || after.runtime == before.runtime);
}

TEST(another_policy_is_kept)
{
	const struct sched_param param = { 0 };

	assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &param), 0);
	timeslice_setup();
	assert_int_equal(sched_getscheduler(0), SCHED_BATCH);
}
