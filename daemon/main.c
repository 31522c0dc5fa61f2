/* SPDX-License-Identifier: Apache-2.0 */
/* lockbrokerd: reads the command line and the configuration, and chooses how it begins. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "adopt.h"
#include "base/log.h"
#include "command_line.h"
#include "daemon.h"
#include "io/base/keeper.h"
#include "io/base/process.h"
#include "io/base/timeslice.h"
#include "io/base/trim.h"
#include "io/conf/conf_access.h"
#include "io/handover/handover.h"
#include "io/handover/program.h"
#include "io/fdstore.h"
#include "keeper/supervisor.h"
#include "parts.h"
#include "start.h"

/* If a standard descriptor is closed, one of ours could take its place and receive what is meant for the log. To write to
 * what stands there instead is an error, as before. */
static void guard_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* What a worker that was killed had read; of the configuration also that of the service before its restart. */
static void find_former(struct daemon *d, struct options *options)
{
	keeper_receive(d->keeper, &d->past);
	options->former = d->conf_fd = keeper_take(&d->past, KEEPER_CONF);
	options->former_first = daemon_follows_crash(d);
	d->secret_fd = keeper_take(&d->past, KEEPER_SECRET);
	if (options->former < 0)
		options->former = fdstore_conf();
}

/* What the configuration only names is looked at as well: the log says what is wrong. */
static int check_config(struct daemon *d, const struct options *options)
{
	size_t count = d->conf.file_count;
	char sentence[CONF_SENTENCE_MAX];
	int rc;

	log_setup(LOG_LEVEL_WARNING, LOG_FORM_PLAIN);
	daemon_warn(&d->conf);
	if (conf_subids_pass(&d->conf, "/etc/subuid", sentence))
		log_warning(rule_passed, LOG_NO_FIELDS, "%s", sentence);
	rc = daemon_read_named(d);
	if (rc < 0)
		return rc == -EAGAIN ? EXIT_FAILURE : EXIT_USAGE;
	printf("%s: no errors%s", count ? d->conf.files[0] : options->source.default_file,
	       count ? "" : ": there is no such file, so the defaults count");
	for (size_t i = 1; i < count; i++)
		printf("%s%s", i == 1 ? ", with " : ", ", d->conf.files[i]);
	putchar('\n');
	return command_line_printed();
}

/* The worker. */
static int begin(struct daemon *d, const struct options *options)
{
	struct parcel kept = { 0 };
	int rc;

	trim_setup();
	timeslice_setup();
	rc = daemon_prepare(d, options);
	if (rc < 0) {
		int status = rc == -EAGAIN ? EXIT_FAILURE : EXIT_USAGE;

		parts_free(d, false, status);
		return status;
	}
	if (d->takeover)
		return adopt_handed_over(d, &options->source);
	if (adopt_is_kept(d, &kept))
		return adopt_kept(d, &options->source, &kept);
	return start(d, &options->source);
}

/* The configuration is the worker's to use: this process has only found it right. */
static int keep(const struct program *program, const struct options *options, struct conf *conf)
{
	enum log_form form = options->foreground ? LOG_FORM_HUMAN : log_form_detect();

	log_setup((enum log_level)conf->broker.log_level, form);
	conf_free(conf);
	return supervisor_run(program, form);
}

int main(int argc, char **argv)
{
	struct daemon d = {
		.clients = { .listener = { .fd = -1, .lock_fd = -1 },
			     .role = KEEPER_LISTENER,
			     .lock_role = KEEPER_LISTENER_LOCK },
		.operators = { .listener = { .fd = -1, .lock_fd = -1 },
			       .role = KEEPER_OPERATORS,
			       .lock_role = KEEPER_OPERATORS_LOCK },
		.notify = { .fd = -1 },
		.pid_fd = -1,
		.conf_fd = -1,
		.secret_fd = -1,
	};
	struct options options = { .former = -1 };
	int status;

	d.program = program_new(argc, argv);
	d.takeover = options.takeover = takeover_new();
	d.keeper = keeper_new();
	guard_standard();
	status = supervisor_resume(d.program);
	if (status < 0)
		find_former(&d, &options);
	if (status < 0)
		status = command_line_read(argc, argv, &options, &d.conf);
	if (status < 0)
		process_dumpable(d.conf.core);
	if (status < 0 && options.check_config)
		status = check_config(&d, &options);
	else if (status < 0 && d.conf.keeper && !d.keeper && !d.takeover)
		status = keep(d.program, &options, &d.conf);
	else if (status < 0)
		status = begin(&d, &options);
	takeover_free(d.takeover);
	keeper_past_free(&d.past);
	keeper_free(d.keeper);
	program_free(d.program);
	bytes_free(&d.identity);
	conf_free(&d.conf);
	command_line_free(&options);
	return status;
}
