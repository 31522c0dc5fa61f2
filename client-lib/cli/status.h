/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The line that `systemctl status` shows for a service whose main process is this command: STATUS= of sd_notify(3). The
 * unit has NotifyAccess=main, and any Type=. Nothing is sent by a command that the main process has started, nor
 * without a service manager; and a text that the manager has no room for is dropped, so this never waits.
 */
#pragma once

#include <stdbool.h>

/* The service manager has started this process, and shows its status. */
bool cli_status_is_shown(void);
/* One line, of which invisible characters are escaped, unless that line is shown already. */
void cli_status(const char *format, ...) __attribute__((format(printf, 1, 2)));
