/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & (S_IRWXG | S_IRWXO)))
		return -EPERM;
	return 0;
}

static int read_line(int fd, char secret[SECRET_BYTES_MAX])
{
	ssize_t len = read(fd, secret, SECRET_BYTES_MAX - 1);
	char *colon;

	if (len < 0)
		return -errno;
	if (len > 0 && secret[len - 1] == '\n')
		len--;
	secret[len] = '\0';
	colon = strchr(secret, ':');
	if (strlen(secret) != (size_t)len || strchr(secret, '\n') || !colon || colon == secret || !colon[1])
		return -EBADMSG;
	return 0;
}

int secret_read(const char *path, char secret[SECRET_BYTES_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	if (fd < 0)
		return -errno;
	rc = check(fd);
	if (rc == 0)
		rc = read_line(fd, secret);
	close(fd);
	return rc;
}
