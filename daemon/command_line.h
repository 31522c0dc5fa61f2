/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, and the configuration that it leads to. */
#pragma once

#include <stdbool.h>

#include "io/conf/conf_file.h"

struct takeover;

enum {
	EXIT_USAGE = 2, /* also when only another configuration can help, so that starting again is useless */
};

struct options {
	struct conf_source source; /* its strings belong to the command line */
	char **overrides;
	bool foreground, print_config, check_config;
	struct takeover *takeover; /* NULL: this process is started as usual; it learns why this process refuses */
	/* The configuration that was in use before this process, as a file; -1: none, or nobody left it. */
	int former;
	bool former_first; /* this process goes on where another one was killed: only an error in it leads to the file */
	char *unused;      /* the error in the file, so that the former one is used; NULL: none */
};

/*
 * Reads all of it. -1: go on; otherwise the exit status: everything was said. Both are to be freed in any case, the
 * configuration by conf_free().
 */
int command_line_read(int argc, char **argv, struct options *options, struct conf *conf);
/* The exit status after all output; output that could not be printed is reported. */
int command_line_printed(void);
void command_line_free(struct options *options);
