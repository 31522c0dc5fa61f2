/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/timeslice.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As sched_setattr(2) has it: the C library has no function for it yet. */
struct timeslice_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

void timeslice_setup(void)
{
	struct timeslice_attributes a = { .size = sizeof(a), .policy = SCHED_OTHER, .runtime = TIMESLICE_NS };
	long rc;

	errno = 0;
	a.nice = getpriority(PRIO_PROCESS, 0);
	if (errno || sched_getscheduler(0) != SCHED_OTHER)
		return;
	/* Where that is refused everything works, and others wait longer. */
	rc = syscall(SYS_sched_setattr, 0, &a, 0);
	(void)rc;
}
