/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/process_one.h"

#include <signal.h>
#include <unistd.h>

#include "client-lib/cli/say.h"

static void end(int number)
{
	_exit(CLI_SIGNAL + number);
}

void process_one_ends_by_signals(void)
{
	static const int ends[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	const struct sigaction action = { .sa_handler = end };
	struct sigaction now;

	if (getpid() != 1)
		return;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			sigaction(ends[i], &action, NULL);
}
