/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int rights_give_up(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	bool regains = geteuid() == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 &&
		       prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) == 0;
	uint32_t given_up = 0;

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		given_up |= data[i].effective;
		data[i].effective = 0;
		if (!regains)
			continue;
		given_up |= data[i].permitted;
		data[i].permitted = 0;
	}
	/* The unit's system call filter does not let even this be asked for. */
	if (!given_up)
		return 0;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
