/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What --help prints, for all commands or for one. */
#include <stdio.h>
#include <string.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/say.h"
#include "client-lib/lockbroker.h"

/* Further lines of a text are printed below its first one. */
static const struct topic {
	const char *word, *usage, *about;
} topics[] = {
	{ "lock",
	  "[-s | -x] [-n | -w SEC] [-E STATUS] [-L SEC] [-k SEC]\n"
	  "[-r SIG] [-d TEXT] [-o | -F] [--min-hold SEC] [--splay SEC]\n"
	  "[--owner OWNER] [--connect SEC] [--verbose] [-a NAME]...\n"
	  "NAME {CMD [ARG...] | -c LINE}",
	  "run CMD while holding the lock NAME, which is exclusive among all\n"
	  "hosts; options end at NAME, as those of flock(1) do\n"
	  "-a NAME also hold that lock: all or none (up to 64)\n"
	  "-c LINE have $SHELL (/bin/sh) run LINE, which is one word\n"
	  "-s      share the lock with others that share it (--shared)\n"
	  "-x, -e  hold it alone (--exclusive, the default)\n"
	  "-n      do not wait: exit with 75 if the lock is taken (--nonblock,\n"
	  "        --nb)\n"
	  "-w SEC  wait at most that long (fractions allowed), then exit\n"
	  "        with 75; 0 is -n (--wait, --timeout)\n"
	  "-E STATUS        exit with that instead of 75, 0 to 255\n"
	  "                 (--conflict-exit-code)\n"
	  "-L SEC  release the lock after that long, as if it were lost\n"
	  "        (--lease)\n"
	  "-k SEC  when the lock is lost, CMD gets SIGTERM, and SIGKILL SEC\n"
	  "        seconds later (3)\n"
	  "-r SIG  the signal that CMD gets when somebody asks for the lock\n"
	  "        (--on-revoke; none)\n"
	  "-d TEXT show TEXT with the lock, as `who` does\n"
	  "-o      CMD does not inherit the connection, so that processes it\n"
	  "        leaves in the background do not keep the lock (--close)\n"
	  "-F      CMD takes the place of lockbroker: nobody ends it when the\n"
	  "        lock is lost (--no-fork)\n"
	  "--min-hold SEC   hold the lock for that long, though CMD ends\n"
	  "                 before\n"
	  "--splay SEC      first sleep a random time of up to SEC\n"
	  "--owner OWNER    commands with the same OWNER belong together:\n"
	  "                 exit with 70 where one would wait for another\n"
	  "                 (CMD gets OWNER as $LOCKBROKER_OWNER)\n"
	  "--connect SEC    how long to try a broker that is not running: 5;\n"
	  "                 with -n, once\n"
	  "--verbose        say who holds it, and how long getting it took" },
	{ "hold", "[OPTION]... [--json] [-a NAME]... NAME",
	  "hold the lock NAME without a command: print its token in a line,\n"
	  "and hold it until a signal arrives or the reader of the output\n"
	  "goes away. When it is lost: print `lost`, exit with 79. The\n"
	  "options are those of lock that are not about CMD" },
	{ "sem",
	  "-l N [-K K] [-n | -w SEC] [-E STATUS] [-L SEC] [-k SEC]\n"
	  "[-r SIG] [-o | -F] [--min-hold SEC] [--splay SEC]\n"
	  "[--connect SEC] [--verbose] NAME {CMD [ARG...] | -c LINE}",
	  "run CMD while holding K (1; --count) of the N permits of the\n"
	  "semaphore NAME; the other options are those of lock" },
	{ "campaign",
	  "[-n | -w SEC] [-E STATUS] [-k SEC] [-r SIG] [-o | -F]\n"
	  "[--min-hold SEC] [--splay SEC] [--connect SEC] [--verbose]\n"
	  "NAME DATA {CMD [ARG...] | -c LINE}",
	  "run CMD while leading the election NAME; everybody can read DATA\n"
	  "meanwhile; the options are those of lock" },
	{ "leader", "NAME", "show who leads: token, host and data in a line; exit with 1 if\nnobody does" },
	{ "observe", "NAME", "print the leader now and after each change, until interrupted\n(token 0: nobody leads)" },
	{ "ls", "[-a] [-w | --watch=SEC] [--] [PATTERN]",
	  "list the locks that this host holds or waits for; PATTERN may\n"
	  "have * ? [abc]\n"
	  "-a      those of all hosts, with who holds them (--all)\n"
	  "-w      again every 2 seconds, or every SEC, until interrupted\n"
	  "        (--watch)" },
	{ "who", "NAME", "show who holds the lock NAME and who waits for it, on all hosts" },
	{ "why", "NAME", "say in a sentence why the lock NAME is not granted yet" },
	{ "limit", "NAME [N]",
	  "show how many permits the semaphore NAME has; with N, change that\n(for operators)" },
	{ "hosts", "", "list the hosts that share locks with this one" },
	{ "revoke", "NAME [REASON]",
	  "ask the holders of the lock NAME, on all hosts, to release it;\nexit with 1 if no holder was asked" },
	{ "force-unlock", "NAME",
	  "take the lock NAME from its holders (for operators);\nexit with 1 if nobody held it" },
	{ "ping", "", "check that the broker answers" },
	{ "info", "[SECTION]", "show state and counters" },
	{ "metrics", "[--textfile FILE]",
	  "show state and counters as Prometheus reads them, or write them\nto FILE, whole, for a collector of text files" },
	{ "check", "[--lock NAME] [-w LIMITS] [-c LIMITS]",
	  "say in a line whether all is well, for Nagios: exit with 0, 1\n"
	  "(warning), 2 (critical) or 3 (unknown)\n"
	  "--lock  also take the lock NAME from ZooKeeper and release it, and\n"
	  "        show how long that took; wait for it for at most 5 s\n"
	  "-w LIMITS, -c LIMITS  when it is a warning, and when critical:\n"
	  "        limit=PERCENT of any limit in use (80, 95), wait=SEC\n"
	  "        of the longest wait, proof=SEC of the age of the proof,\n"
	  "        answer=SEC until the broker answers (1, 5)" },
	{ "http", "--listen ADDRESS:PORT [--host NAME]... [--anywhere]",
	  "serve /metrics and /healthz to Prometheus, until it is ended\n"
	  "--host NAME   also answer requests that call this host NAME\n"
	  "--anywhere    listen where other hosts can connect" },
	{ "audit", "",
	  "examine all lock directories and delete what this host has left\nthere; exit with 1 if something is wrong" },
	{ "access", "USER NAME [UNIT]",
	  "show what USER may do with the lock NAME, and by which rule\n"
	  "(for operators); UNIT: for a process of that systemd unit\n"
	  "(unknown: one whose unit could not be read)" },
	{ "accounts", "",
	  "show how much of each limit every user uses; the users nearest to\ntheir share come first (for operators)" },
	{ "reload", "",
	  "have the broker read its configuration again, and show what has\nchanged (for operators)" },
	{ "config", "[PATTERN]",
	  "show the keys of the broker's configuration and their values\n(for operators)" },
	{ "drain", "[--wait | --off]",
	  "have the broker grant nothing any longer: waits fail, holders are\n"
	  "asked to release, other hosts go ahead (for operators)\n"
	  "--wait  wait until nothing is held, and tell what still is\n"
	  "--off   grant again" },
	{ "log", "[RECORDS]",
	  "show what has happened lately in the broker, from its flight\nrecorder (for operators)" },
	{ "restart", "",
	  "replace the broker by a new process of the installed program; its\n"
	  "clients notice nothing (for operators)" },
	{ "call", "[-e] [COMMAND [ARG...]]",
	  "send any COMMAND of the protocol and show the reply; exit with 1\n"
	  "if it is an error. Without COMMAND, read a request from each line\n"
	  "of the standard input. -e: then go on and show events" },
};

static const char ending[] =
	"  -S SOCKET    the broker's socket ($LOCKBROKER_SOCKET,\n"
	"               /run/lockbroker/lockbroker.sock). Without it, commands for operators\n"
	"               use operator.sock in the same directory\n"
	"               ($LOCKBROKER_OPERATOR_SOCKET), if this user may open it\n"
	"  --json         print JSON, a line for each value (not for lock, sem, campaign,\n"
	"                 metrics, http)\n"
	"  -h, --help     print this; after a command, only what concerns that command\n"
	"  -V, --version  print the version\n"
	"\n"
	"Exit status: that of CMD, or 128 + its signal; 64 usage; 69 no broker, or it\n"
	"cannot say, without ZooKeeper for example; 70 acquiring it would deadlock; 71 a\n"
	"system call failed; 75 taken (or -E); 77 not allowed; 79 lost before CMD ended,\n"
	"whatever CMD ended with; 126 CMD cannot be run; 127 CMD not found. More in\n"
	"lockbroker(1).\n";

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

int cli_help(const char *word)
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
	return cli_written(CLI_OK);
}

int cli_version(void)
{
	puts("lockbroker " LOCKBROKER_VERSION);
	return cli_written(CLI_OK);
}
