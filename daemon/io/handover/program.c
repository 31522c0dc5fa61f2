/* SPDX-License-Identifier: Apache-2.0 */
#include "io/handover/program.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

struct program {
	char *path;
	char **argv, **envp; /* envp[0] is free for PROGRAM_VARIABLE */
};

static char *copy_of(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		abort();
	return copy;
}

/* The path by which the kernel was asked for it; what /proc/self/exe leads to may have been replaced. */
static char *path_of(const char *word)
{
	const char *path = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	char dir[PATH_MAX], *whole = NULL;

	if (!path || !*path)
		path = word;
	if (path[0] == '/' || !getcwd(dir, sizeof(dir)))
		return copy_of(path);
	if (asprintf(&whole, "%s/%s", dir, path) < 0)
		abort();
	return whole;
}

/* The socket is handed over with everything else; the watchdog concerns whoever is the service then. */
static bool is_ours(const char *setting)
{
	static const char *const names[] = { "LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=", "WATCHDOG_PID=",
					     PROGRAM_VARIABLE "=" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(setting, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

struct program *program_new(int argc, char **argv)
{
	struct program *p = mem_new(sizeof(*p));
	size_t count = 0, used = 1;

	while (environ && environ[count])
		count++;
	p->path = path_of(argc > 0 ? argv[0] : "lockbrokerd");
	p->argv = mem_new(((size_t)argc + 1) * sizeof(char *));
	for (int i = 0; i < argc; i++)
		p->argv[i] = copy_of(argv[i]);
	p->envp = mem_new((count + 2) * sizeof(char *));
	for (size_t i = 0; i < count; i++)
		if (!is_ours(environ[i]))
			p->envp[used++] = copy_of(environ[i]);
	return p;
}

void program_free(struct program *p)
{
	if (!p)
		return;
	for (char **word = p->argv; *word; word++)
		free(*word);
	for (char **setting = p->envp + 1; *setting; setting++)
		free(*setting);
	free(p->path);
	mem_free(p->argv);
	mem_free(p->envp);
	mem_free(p);
}

static int fail(char *error, int rc, const char *path, const char *why)
{
	snprintf(error, PROGRAM_ERROR_MAX, "%s %s", path, why);
	return rc;
}

/* What somebody else may have put there is not given all that we have. */
static int check(const char *path, char *error)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return fail(error, -errno, path, errno == ENOENT ? "is not there any longer" : strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(error, -EINVAL, path, "is not a file");
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return fail(error, -EPERM, path, "belongs to another user than the daemon's and root");
	return 0;
}

int program_start(const struct program *p, int fd, pid_t *ret_pid, char error[PROGRAM_ERROR_MAX])
{
	char setting[sizeof(PROGRAM_VARIABLE) + 16];
	posix_spawn_file_actions_t actions;
	int rc = check(p->path, error);

	if (rc < 0)
		return rc;
	snprintf(setting, sizeof(setting), PROGRAM_VARIABLE "=%d", fd);
	p->envp[0] = setting;
	if (posix_spawn_file_actions_init(&actions) != 0)
		abort();
	/* To itself: it is inherited, and nothing else is. */
	rc = -posix_spawn_file_actions_adddup2(&actions, fd, fd);
	if (rc == 0)
		rc = -posix_spawn(ret_pid, p->path, &actions, NULL, p->argv, p->envp);
	posix_spawn_file_actions_destroy(&actions);
	p->envp[0] = NULL;
	if (rc < 0)
		snprintf(error, PROGRAM_ERROR_MAX, "%s cannot be run: %s", p->path, strerror(-rc));
	return rc;
}
