/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * lockbroker http becomes the program lockbroker-http, which alone needs libevent.
 */
#include "client-lib/cli/become.h"
#include "client-lib/cli/commands.h"
#include "client-lib/cli/say.h"

/* The program takes no more of them. */
enum { HOSTS_MAX = 16 };

/* What it is started with, without the options that are ours. */
static char *words[2 * (HOSTS_MAX + 4) + 2] = { (char[]){ "http" } };
static int count = 1;

int cli_http_take(void *context, enum cli_option_id id, char *value)
{
	static char listen[] = "--listen", host[] = "--host", anywhere[] = "--anywhere", page[] = "--page";
	char *given;

	if (count + 2 >= (int)(sizeof(words) / sizeof(words[0])))
		return cli_usage("--host can be given at most %d times.", HOSTS_MAX);
	if (id == OPT_PAGE && value) {
		if (asprintf(&given, "%s=%s", page, value) < 0)
			return CLI_OSERR;
		words[count++] = given;
		return 0;
	}
	words[count++] = id == OPT_LISTEN ? listen : id == OPT_HOST ? host : id == OPT_PAGE ? page : anywhere;
	if (value)
		words[count++] = value;
	return 0;
}

int cli_http(const struct cli_words *w)
{
	return cli_become(w, "lockbroker-http", words, "It comes with the package lockbrokerd.");
}
