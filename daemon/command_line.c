/* SPDX-License-Identifier: Apache-2.0 */
#include "command_line.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/conf/conf.h"
#include "io/handover/handover.h"

#define CONF_FILE LOCKBROKER_SYSCONFDIR "/lockbroker.conf"

enum { FORMER_PATH_MAX = 32 };

static const char help[] =
	"Usage: lockbrokerd [OPTION]...\n"
	"Locks for the processes of this host, over a Unix socket; between hosts by one ZooKeeper session.\n"
	"\n"
	"  -c, --config FILE              read FILE (" CONF_FILE " if it exists), and the drop-ins\n"
	"                                 FILE.d/NN-NAME.conf after it\n"
	"  -o, --option SECTION.KEY=VALUE set a key, whatever the file says; may be given several times\n"
	"      --standalone               locks for this host alone, without ZooKeeper\n"
	"      --foreground               write the time in every line of the log, for people to read\n"
	"                                 (the daemon never goes into the background by itself)\n"
	"      --print-config             print the configuration that would be used, and exit\n"
	"      --check-config [FILE]      look for errors in the configuration, or in FILE, and in its drop-ins; print\n"
	"                                 a line for each error, and exit\n"
	"      --version                  print the version, and exit\n"
	"  -h, --help                     print this, and exit\n"
	"\n"
	"SIGTERM, SIGINT and SIGQUIT stop the daemon: it ends when all locks are released, at the latest after\n"
	"daemon.stop_timeout_ms; a second signal ends it at once. SIGHUP has it read its configuration again;\n"
	"SIGUSR2 hands everything over to a new process of the installed program, as `lockbroker restart` does; SIGUSR1\n"
	"stores connections and locks with the service manager, for the next start. Other signals are logged and ignored.\n"
	"The process that you start is the keeper: it keeps connections, starts a second process (the worker) that serves\n"
	"the clients, and starts another worker if that one crashes. With -o daemon.keeper=0 there is no keeper, and the\n"
	"first process serves the clients.\n"
	"Exit status:\n"
	"0 stopped as asked, 1 failed, 2 bad options or configuration, or another daemon uses the host's name.\n";

/* A line for each error; the process that hands over is told the first one. Returns the exit status. */
static int report(const struct options *options, const char *error, int status)
{
	char line[CONF_SENTENCE_MAX];
	const char *begin, *end;

	for (begin = error;; begin = end + 1) {
		end = begin + strcspn(begin, "\n");
		fprintf(stderr, "%s%.*s\n", options->check_config ? "" : "lockbrokerd: ", (int)(end - begin), begin);
		if (!*end)
			break;
	}
	conf_error_line(error, line);
	takeover_refuse(options->takeover, line);
	return status;
}

static int usage_error(const struct options *options, const char *error)
{
	return report(options, error, EXIT_USAGE);
}

/* 0 or -errno. Nobody has asked for a kill, nor to have the file read then; an error in it must not cost anybody a lock. */
static int load(struct conf *conf, struct options *options, char error[CONF_ERROR_MAX])
{
	struct conf_source former = options->source;
	char path[FORMER_PATH_MAX], why[CONF_ERROR_MAX];
	int rc;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", options->former);
	former.file = path;
	former.kept = true;
	if (options->former >= 0 && options->former_first && conf_load(conf, &former, why) == 0)
		return 0;
	rc = conf_load(conf, &options->source, error);
	if (rc == 0)
		return 0;
	if (options->former < 0 || conf_load(conf, &former, why) < 0)
		return rc;
	conf_error_line(error, why);
	options->unused = strdup(why);
	return 0;
}

/* -1: go on; otherwise the exit status. */
static int read_config(struct conf *conf, struct options *options)
{
	char error[CONF_ERROR_MAX];
	int rc = load(conf, options, error);

	/* Starting again helps once the name service is there. */
	if (rc < 0)
		return report(options, error, rc == -EAGAIN ? EXIT_FAILURE : EXIT_USAGE);
	if (!options->print_config)
		return -1;
	conf_print(conf, stdout);
	return command_line_printed();
}

int command_line_printed(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_SUCCESS;
	fprintf(stderr, "lockbrokerd: cannot write to the standard output: %s\n", strerror(errno));
	return EXIT_FAILURE;
}

/* What getopt_long() has refused, of which it says nothing itself. */
static int option_error(const struct options *options, char **argv, bool lacks_value)
{
	const char *word = argv[optind - 1];
	char letter[] = { '-', (char)optopt, '\0' }, error[CONF_ERROR_MAX];

	if (optopt && strncmp(word, "--", 2) != 0)
		word = letter;
	snprintf(error, sizeof(error), lacks_value ? "%s needs a value: try --help" : "there is no option %s: try --help",
		 word);
	return usage_error(options, error);
}

int command_line_read(int argc, char **argv, struct options *options, struct conf *conf)
{
	static const struct option names[] = {
		{ "config", required_argument, NULL, 'c' }, { "option", required_argument, NULL, 'o' },
		{ "standalone", no_argument, NULL, 's' },   { "foreground", no_argument, NULL, 'f' },
		{ "print-config", no_argument, NULL, 'p' }, { "check-config", no_argument, NULL, 'k' },
		{ "version", no_argument, NULL, 'v' },      { "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int status = -1, c;

	options->overrides = mem_new((size_t)argc * sizeof(*options->overrides) + 1);
	options->source = (struct conf_source){ .default_file = CONF_FILE, .overrides = options->overrides };
	opterr = 0;
	while (status < 0 && (c = getopt_long(argc, argv, ":c:o:h", names, NULL)) >= 0) {
		switch (c) {
		case 'c':
			options->source.file = optarg;
			break;
		case 'o':
			options->overrides[options->source.override_count++] = optarg;
			break;
		case 's':
			options->source.standalone = true;
			break;
		case 'f':
			options->foreground = true;
			break;
		case 'p':
			options->print_config = true;
			break;
		case 'k':
			options->check_config = true;
			break;
		case 'v':
			puts("lockbrokerd " LOCKBROKERD_VERSION);
			status = command_line_printed();
			break;
		case 'h':
			fputs(help, stdout);
			status = command_line_printed();
			break;
		default:
			status = option_error(options, argv, c == ':');
			break;
		}
	}
	if (options->check_config && !options->source.file && optind < argc)
		options->source.file = argv[optind++];
	if (status < 0 && optind < argc)
		status = usage_error(options, "there are words that are no options: try --help");
	if (status < 0)
		status = read_config(conf, options);
	return status;
}

void command_line_free(struct options *options)
{
	mem_free(options->overrides);
	free(options->unused);
}
