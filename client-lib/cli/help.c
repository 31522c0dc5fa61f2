/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What --help says, of all commands or of one. */
#include <stdio.h>
#include <string.h>

#include "client-lib/cli/commands.h"

/* Further lines of a text stand below its first one. */
static const struct topic {
	const char *word, *usage, *about;
} topics[] = {
	{ "lock",
	  "[-s | -x] [-n | -w SEC] [-L SEC] [-k SEC] [-r SIG] [-d TEXT]\n"
	  "[-o] [--owner OWNER] [--connect SEC] NAME... -- CMD [ARG...]",
	  "run CMD while holding the lock NAME, here and on all other hosts;\n"
	  "of several NAMEs all or none\n"
	  "-s      share it with others who do (--shared)\n"
	  "-x      with nobody (--exclusive, the default)\n"
	  "-n      do not wait: exit with 75 when it is taken\n"
	  "-w SEC  wait that long at most (fractions allowed): exit with 75\n"
	  "        when it ran out\n"
	  "-L SEC  give it back after that long, as if it were lost (--lease)\n"
	  "-k SEC  when the lock is lost CMD gets SIGTERM, and SIGKILL this\n"
	  "        much later (3)\n"
	  "-r SIG  what CMD gets when somebody asks for the lock\n"
	  "        (--on-revoke; none)\n"
	  "-d TEXT show that with the lock: `who` tells it\n"
	  "-o      CMD does not inherit the connection: what it leaves in the\n"
	  "        background does not keep the lock (--close)\n"
	  "--owner OWNER    what says the same OWNER waits as one: exit with\n"
	  "                 70 where it would wait for itself (CMD gets it as\n"
	  "                 $LOCKBROKER_OWNER)\n"
	  "--connect SEC    how long a broker that is not there is tried: 5,\n"
	  "                 with -n once" },
	{ "sem", "-l N [-c K] [-n | -w SEC] [-L SEC] [-k SEC] [-r SIG]\n[-o] [--connect SEC] NAME -- CMD [ARG...]",
	  "run CMD while holding K (1) of the N permits of the semaphore NAME;\n"
	  "other options as for lock" },
	{ "campaign", "[-n | -w SEC] [-k SEC] [-r SIG] [-o] [--connect SEC]\nNAME DATA -- CMD [ARG...]",
	  "run CMD while leading the election NAME; everybody can read DATA then;\n"
	  "options as for lock" },
	{ "leader", "NAME", "who leads: token, host and data in a line; 1: nobody" },
	{ "observe", "NAME", "the same for each change, until interrupted; token 0: nobody leads" },
	{ "ls", "[PATTERN]", "the locks this host holds or waits for; PATTERN with * ? [abc]" },
	{ "who", "NAME", "who holds the lock NAME and who waits for it, on all hosts" },
	{ "why", "NAME", "why it is not granted yet, in a sentence" },
	{ "limit", "NAME [N]",
	  "how many permits the semaphore NAME has; N: change that, for root and\nthe broker's own user" },
	{ "hosts", "", "the hosts that share locks with this one" },
	{ "revoke", "NAME [REASON]",
	  "ask the holders of the lock NAME, on all hosts, to release it: 1 when\nno holder was asked" },
	{ "force-unlock", "NAME", "take it from them, for root and the broker's own user: 1 when nobody\nhad it" },
	{ "ping", "", "is the broker there?" },
	{ "info", "[SECTION]", "state and counters" },
	{ "audit", "", "look into all lock directories, delete what this host has left there;\n1: something is odd" },
	{ "call", "[-e] [COMMAND [ARG...]]",
	  "send any COMMAND of the protocol and show the reply: 1 when it is an\n"
	  "error. Without COMMAND a request in each line of the standard input;\n"
	  "-e: go on and show events" },
};

static const char ending[] =
	"  -S SOCKET    the broker's socket ($LOCKBROKER_SOCKET,\n"
	"               /run/lockbroker/lockbroker.sock)\n"
	"  --help       this; after a command, of that command only\n"
	"  --version\n"
	"\n"
	"Exit status: that of CMD, or 128 + its signal; 64 usage, 69 no broker or no\n"
	"ZooKeeper, or the lock was lost and CMD ended with 0 or was not started, 70 it\n"
	"would be waited for in a circle, 71 the system failed, 75 not acquired, 77 not\n"
	"allowed, 126 CMD cannot be run, 127 CMD not found. More in lockbroker(1).\n";

static void print_lines(const char *text, int indent)
{
	const char *end;

	for (; *(end = strchrnul(text, '\n')); text = end + 1)
		printf("%.*s\n%*s", (int)(end - text), text, indent, "");
	puts(text);
}

static void print_usage(const char *before, const struct topic *t)
{
	int indent = printf("%slockbroker [-S SOCKET] %s%s", before, t->word, *t->usage ? " " : "");

	print_lines(t->usage, indent);
}

static void print_about(const struct topic *t)
{
	print_lines(t->about, printf("  %-12s ", t->word));
}

void cli_help(const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
		if (!word || strcmp(word, topics[i].word) == 0)
			print_usage(word || i == 0 ? "Usage: " : "       ", &topics[i]);
	putchar('\n');
	for (i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
		if (!word || strcmp(word, topics[i].word) == 0)
			print_about(&topics[i]);
	putchar('\n');
	fputs(ending, stdout);
}
