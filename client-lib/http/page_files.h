/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The files of client-lib/http/page/, as they are built in (page_files.sh). */
#pragma once

#include <stddef.h>

struct page_file {
	const char *path, *type; /* "/page.css", and the value of Content-Type */
	const unsigned char *data;
	size_t len;
};

extern const struct page_file page_files[];
extern const size_t page_file_count;
