/* SPDX-License-Identifier: Apache-2.0 */
#include "io/handover/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/base/keeper.h"
#include "protocol/bytes_format.h"
#include "protocol/number.h"

enum { SETTING_MAX = 64, GIFTS = 4, PASSED_MAX = 1000 };

static const char SAME[] = "/proc/self/exe";

struct program {
	char *path, *path_setting;
	char **argv, **envp; /* from envp[GIFTS] on; those before have room for what a new process is given */
	char *fds, *names;   /* LISTEN_FDS, LISTEN_FDNAMES; NULL: no descriptors are for this process */
	char *title;         /* where the kernel has put the words, and behind them the environment */
	size_t title_words, title_bytes; /* of the words alone; with the environment */
};

/* A process has the name of the path by which it was started. */
static void take_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	prctl(PR_SET_NAME, slash ? slash + 1 : path);
}

/* The path by which the kernel was asked for it; what /proc/self/exe leads to may have been replaced. */
static char *path_of(const char *word)
{
	const char *path = (const char *)(uintptr_t)getauxval(AT_EXECFN), *told = getenv(PROGRAM_PATH_VARIABLE);
	char dir[PATH_MAX], *whole = NULL;

	if (path && strcmp(path, SAME) == 0 && told) {
		take_name(told);
		path = told;
	}
	if (!path || !*path)
		path = word;
	if (path[0] == '/' || !getcwd(dir, sizeof(dir)))
		return mem_text(path);
	if (asprintf(&whole, "%s/%s", dir, path) < 0)
		abort();
	return whole;
}

/* The socket is handed over with everything else; the watchdog concerns whoever is the service then. */
static bool is_ours(const char *setting)
{
	static const char *const names[] = { "LISTEN_PID=",        "LISTEN_FDS=",
					     "LISTEN_FDNAMES=",    "WATCHDOG_PID=",
					     KEEPER_VARIABLE "=",  PROGRAM_KEEPING_VARIABLE "=",
					     PROGRAM_VARIABLE "=", PROGRAM_PATH_VARIABLE "=" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(setting, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static void note_passed(struct program *p)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
	int64_t number = 0, count = 0;

	if (!pid || !fds || !number_parse(slice_of(pid), &number) || number != getpid() ||
	    !number_parse(slice_of(fds), &count) || count < 1 || count > PASSED_MAX)
		return;
	if (asprintf(&p->fds, "LISTEN_FDS=%s", fds) < 0 ||
	    asprintf(&p->names, "LISTEN_FDNAMES=%s", names ? names : "") < 0)
		abort();
}

/* How far the words that the kernel has put one behind the other go on in that list. */
static char *end_of(char **list, char *end)
{
	for (; *list && (!end || *list == end); list++)
		end = *list + strlen(*list) + 1;
	return end;
}

/* The words and the environment are at another place after this, so that a title can stand in this one. */
static void make_room(struct program *p, char **argv)
{
	size_t count = 0, bytes = 0;
	char **copies, *end = end_of(argv, NULL), *copy;

	if (!end)
		return;
	p->title = argv[0];
	p->title_words = (size_t)(end - argv[0]);
	if (environ)
		end = end_of(environ, end);
	p->title_bytes = (size_t)(end - argv[0]);
	for (size_t i = 0; argv[i]; i++)
		argv[i] = p->argv[i];
	for (; environ && environ[count]; count++)
		bytes += strlen(environ[count]) + 1;
	/* One piece of memory until the process ends: what unsetenv() takes out of the list is a part of it. */
	copies = mem_new((count + 1) * sizeof(char *) + bytes);
	copy = (char *)(copies + count + 1);
	for (size_t i = 0; i < count; i++) {
		copies[i] = copy;
		copy = stpcpy(copy, environ[i]) + 1;
	}
	environ = copies;
}

struct program *program_new(int argc, char **argv)
{
	struct program *p = mem_new(sizeof(*p));
	size_t count = 0, used = GIFTS;

	while (environ && environ[count])
		count++;
	p->path = path_of(argc > 0 ? argv[0] : "lockbrokerd");
	if (asprintf(&p->path_setting, "%s=%s", PROGRAM_PATH_VARIABLE, p->path) < 0)
		abort();
	p->argv = mem_new(((size_t)argc + 1) * sizeof(char *));
	for (int i = 0; i < argc; i++)
		p->argv[i] = mem_text(argv[i]);
	p->envp = mem_new((count + GIFTS + 1) * sizeof(char *));
	for (size_t i = 0; i < count; i++)
		if (!is_ours(environ[i]))
			p->envp[used++] = mem_text(environ[i]);
	note_passed(p);
	make_room(p, argv);
	return p;
}

void program_title(const struct program *p, const char *role)
{
	struct bytes title = { 0 };

	if (!p->title_bytes)
		return;
	bytes_format(&title, "lockbrokerd: %s", slice_of(role));
	for (char **word = p->argv + 1; *word; word++)
		bytes_format(&title, " %s", slice_of(*word));
	if (title.len > p->title_bytes - 1)
		title.len = p->title_bytes - 1;
	/* The kernel shows the words from end to end; or, if none ends there, what stands up to the next end. */
	memset(p->title, '\0', p->title_words);
	memcpy(p->title, title.data, title.len);
	p->title[title.len] = '\0';
	bytes_free(&title);
}

void program_free(struct program *p)
{
	if (!p)
		return;
	for (char **word = p->argv; *word; word++)
		free(*word);
	for (char **setting = p->envp + GIFTS; *setting; setting++)
		free(*setting);
	free(p->path);
	free(p->path_setting);
	free(p->fds);
	free(p->names);
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

static int cannot_run(const char *path, int rc, char *error)
{
	snprintf(error, PROGRAM_ERROR_MAX, "%s cannot be run: %s", path, strerror(-rc));
	return rc;
}

/* Where the kernel is to find it. */
static const char *file_of(const struct program *p, const struct program_gift *gift)
{
	return gift->same && !program_is_installed(p) ? SAME : p->path;
}

/* The environment with it. `setting` has to last as long. */
static char **environment(const struct program *p, const struct program_gift *gift, char setting[SETTING_MAX])
{
	char **envp = p->envp + GIFTS;

	snprintf(setting, SETTING_MAX, "%s=%d", gift->variable, gift->fd);
	*--envp = setting;
	if (gift->passed && p->fds) {
		*--envp = p->names;
		*--envp = p->fds;
	}
	if (gift->same)
		*--envp = p->path_setting;
	return envp;
}

static int spawn(const struct program *p, const char *path, const struct program_gift *gift, char **envp,
		 pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int rc;

	sigemptyset(&none);
	if (posix_spawn_file_actions_init(&actions) != 0 || posix_spawnattr_init(&attributes) != 0)
		abort();
	if (gift->session) {
		posix_spawnattr_setsigmask(&attributes, &none);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	}
	/* To itself: it is inherited, and nothing else is but what the service manager has passed. */
	rc = -posix_spawn_file_actions_adddup2(&actions, gift->fd, gift->fd);
	if (rc == 0)
		rc = -posix_spawn(ret_pid, path, &actions, &attributes, p->argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

int program_start(const struct program *p, const struct program_gift *gift, pid_t *ret_pid,
		  char error[PROGRAM_ERROR_MAX])
{
	const char *path = file_of(p, gift);
	char setting[SETTING_MAX];
	int rc = check(path, error);

	if (rc < 0)
		return rc;
	rc = spawn(p, path, gift, environment(p, gift, setting), ret_pid);
	return rc < 0 ? cannot_run(path, rc, error) : 0;
}

int program_replace(const struct program *p, const struct program_gift *gift, char error[PROGRAM_ERROR_MAX])
{
	char setting[SETTING_MAX];
	int rc = check(p->path, error);

	if (rc < 0)
		return rc;
	fcntl(gift->fd, F_SETFD, 0);
	execve(p->path, p->argv, environment(p, gift, setting));
	rc = -errno;
	fcntl(gift->fd, F_SETFD, FD_CLOEXEC);
	return cannot_run(p->path, rc, error);
}

int program_passed(const struct program *p)
{
	return p->fds ? atoi(p->fds + strlen("LISTEN_FDS=")) : 0;
}

bool program_is_installed(const struct program *p)
{
	struct stat mine, there;

	return stat("/proc/self/exe", &mine) == 0 && stat(p->path, &there) == 0 && mine.st_dev == there.st_dev &&
	       mine.st_ino == there.st_ino;
}
