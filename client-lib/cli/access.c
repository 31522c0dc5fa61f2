/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* lockbroker access: finds the numbers of a user and of its groups, which the broker does not look up while it serves. */
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/sheet.h"

enum { GROUPS_MAX = 1024, GROUPS_TEXT_MAX = GROUPS_MAX * 11 };

/* "uid" and "g,g,..."; false: there is no such user. A number that is no user's has no groups. */
static bool find_user(const char *user, char uid[16], char groups[GROUPS_TEXT_MAX])
{
	const struct passwd *pw = getpwnam(user);
	gid_t list[GROUPS_MAX];
	int count = GROUPS_MAX, len = 0;
	char *end;
	unsigned long number = strtoul(user, &end, 10);

	groups[0] = '\0';
	if (!pw && (!*user || *end || user[0] < '0' || user[0] > '9' || number >= UINT32_MAX))
		return false;
	if (!pw)
		pw = getpwuid((uid_t)number);
	snprintf(uid, 16, "%lu", pw ? (unsigned long)pw->pw_uid : number);
	if (!pw || getgrouplist(pw->pw_name, pw->pw_gid, list, &count) < 0)
		return true;
	for (int i = 0; i < count; i++)
		len += snprintf(groups + len, (size_t)(GROUPS_TEXT_MAX - len), "%s%lu", i ? "," : "", (unsigned long)list[i]);
	return true;
}

/* As a rule names it, unit:web.service, or without that word. NULL: it is none, and that was said. */
static const char *unit_of(const char *text)
{
	const char *unit = strncmp(text, "unit:", 5) == 0 ? text + 5 : text;

	if (strchr(unit, '.') || !*unit || strcmp(unit, "unknown") == 0)
		return unit;
	cli_usage("The unit \"%s\" has no kind: its name ends as in %s.service.", unit, unit);
	return NULL;
}

int cli_access(struct lb *lb, const struct cli_words *w)
{
	static const struct sheet_column columns[] = {
		{ "VERB", "verb", 0, SHEET_ALWAYS, NULL }, { "ALLOWED", "allowed", 0, SHEET_ALWAYS, NULL },
		{ "RULE", "rule", 12, SHEET_ALWAYS, NULL }, { "WHERE", "where", 12, SHEET_ALWAYS, NULL },
	};
	char *const *arguments = w->arguments;
	char uid[16], groups[GROUPS_TEXT_MAX];
	const char *words[] = { "ACCESS", uid, arguments[1], "GROUPS", groups, "UNIT", arguments[2] };
	const struct lb_reply *reply;
	int status;

	if (!find_user(arguments[0], uid, groups)) {
		cli_say("There is no user \"%s\": give a name or a number that getent(1) shows.", arguments[0]);
		return CLI_USAGE;
	}
	if (arguments[2] && !(words[6] = unit_of(arguments[2])))
		return CLI_USAGE;
	cli_say_about(w->command->word, arguments[1]);
	status = cli_ask_words(lb, arguments[2] ? 7 : 5, words, &reply);
	if (status != CLI_OK)
		return status;
	if (cli_json_asked)
		cli_json_line(reply);
	else
		sheet_show(columns, sizeof(columns) / sizeof(columns[0]), reply, 0);
	return CLI_OK;
}
