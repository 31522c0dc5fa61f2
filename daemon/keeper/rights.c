/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

int rights_give_up(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	uint32_t effective = 0;

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		effective |= data[i].effective;
		data[i].effective = 0;
	}
	/* The unit's system call filter does not let even this be asked for. */
	if (!effective)
		return 0;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
