/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* lockbroker top becomes the program lockbroker-top, which alone needs ncurses. */
#include "client-lib/cli/become.h"
#include "client-lib/cli/commands.h"
#include "client-lib/cli/operators.h"

int cli_top(const struct cli_words *w)
{
	char operators[OPERATORS_PATH_MAX];
	const char *found = operators_socket(w->socket, operators);
	char *words[] = { (char[]){ "top" }, found == operators ? operators : NULL, NULL };

	return cli_become(w, "lockbroker-top", words,
			  "It comes with the package lockbroker, and is not built where there is no ncurses.");
}
