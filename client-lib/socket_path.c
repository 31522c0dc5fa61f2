/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "socket_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define START_IT "Start it, or set LOCKBROKER_SOCKET to the socket that it serves"
static const char start_it[] = START_IT ".";
static const char start_the_systems[] = START_IT "; `lockbroker --user` uses one of your own.";
static const char start_the_users[] = "Start it by `systemctl --user enable --now lockbrokerd.socket`.";

/* Nobody else can put a socket there. */
static bool is_own(const char *directory)
{
	struct stat st;

	return *directory == '/' && stat(directory, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* A program that has more rights than its caller does not trust the caller's environment (secure_getenv(3)). */
static bool find_users(struct socket_path *ret)
{
	const char *named = secure_getenv("XDG_RUNTIME_DIR");
	bool is_set = named && *named;
	char usual[32];

	snprintf(usual, sizeof(usual), "/run/user/%u", (unsigned)geteuid());
	if (is_own(is_set ? named : usual)) {
		snprintf(ret->text, sizeof(ret->text), "%s/lockbroker/lockbroker.sock", is_set ? named : usual);
		return true;
	}
	snprintf(
		ret->text, sizeof(ret->text),
		"The broker of this user cannot be found: XDG_RUNTIME_DIR %s%.200s is not a directory that only this user "
		"(%u) may write to. Log in as this user, or set XDG_RUNTIME_DIR.",
		is_set ? "= " : "is not set, and ", is_set ? named : usual, (unsigned)geteuid());
	return false;
}

bool socket_path_find(const char *name, struct socket_path *ret)
{
	if (!name)
		name = secure_getenv("LOCKBROKER_SOCKET");
	if (!name || !*name)
		name = SOCKET_PATH_DEFAULT;
	ret->remedy = strcmp(name, SOCKET_PATH_DEFAULT) == 0 ? start_the_systems : start_it;
	if (strcmp(name, SOCKET_PATH_USER) == 0) {
		ret->remedy = start_the_users;
		return find_users(ret);
	}
	if (*name == '@' && name[1] && !strchr(name, '/'))
		snprintf(ret->text, sizeof(ret->text), "/run/lockbroker%s/lockbroker.sock", name);
	else
		snprintf(ret->text, sizeof(ret->text), "%s", name);
	return true;
}

int socket_path_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, error;

	errno = ENAMETOOLONG;
	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}
