/* SPDX-License-Identifier: Apache-2.0 */
/* lockbrokerd: reads the command line and the configuration, and chooses how it begins. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "adopt.h"
#include "daemon.h"
#include "io/handover/program.h"
#include "io/handover/takeover.h"
#include "command_line.h"
#include "parts.h"
#include "start.h"

/* If a standard descriptor is closed, one of ours could take its place and receive what is meant for the log. */
static void guard_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int begin(struct daemon *d, const struct options *options)
{
	struct parcel kept = { 0 };

	if (daemon_prepare(d, options) < 0) {
		parts_free(d, false, EXIT_USAGE);
		return EXIT_USAGE;
	}
	if (d->takeover)
		return adopt_handed_over(d, &options->source);
	if (adopt_is_kept(d, &kept))
		return adopt_kept(d, &options->source, &kept);
	return start(d, &options->source);
}

int main(int argc, char **argv)
{
	struct daemon d = { .listener = { .fd = -1, .lock_fd = -1 }, .notify = { .fd = -1 }, .pid_fd = -1 };
	struct options options = { 0 };
	int status;

	d.program = program_new(argc, argv);
	d.takeover = options.takeover = takeover_new();
	guard_standard();
	status = command_line_read(argc, argv, &options, &d.conf);
	if (status < 0)
		status = begin(&d, &options);
	takeover_free(d.takeover);
	program_free(d.program);
	parcel_free(&d.identity);
	conf_free(&d.conf);
	command_line_free(&options);
	return status;
}
