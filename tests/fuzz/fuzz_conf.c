/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the configuration of any bytes: it is refused with a sentence, or what it says can be used, and printed it is
 * a file that says the same.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/conf/conf_file.h"
#include "fuzz.h"

/* False: it is refused. */
static bool load(struct conf *c, const void *data, size_t size, bool standalone)
{
	int fd = memfd_create("conf", MFD_CLOEXEC), rc;
	char path[32], error[CONF_ERROR_MAX] = "", line[CONF_SENTENCE_MAX];

	assert(fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	conf_init(c);
	rc = conf_read(c, path, error);
	if (rc == 0)
		rc = conf_finish(c, standalone, error);
	close(fd);
	assert((rc == 0) == (error[0] == '\0'));
	if (rc < 0)
		conf_error_line(error, line);
	return rc == 0;
}

static char *print(const struct conf *c, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);

	assert(out);
	conf_print(c, out);
	assert(fclose(out) == 0);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool standalone = size && data[0] & 1;
	struct conf c, again;

	if (load(&c, data, size, standalone)) {
		size_t len, len_again;
		char *text = print(&c, &len), *text_again;

		assert(load(&again, text, len, standalone));
		text_again = print(&again, &len_again);
		assert(len == len_again && memcmp(text, text_again, len) == 0);
		free(text);
		free(text_again);
		conf_free(&again);
	}
	conf_free(&c);
	return 0;
}
