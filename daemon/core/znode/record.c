/* SPDX-License-Identifier: Apache-2.0 */
#include "core/znode/record.h"

static const char version_line[] = "1\n";

void record_begin(struct bytes *out)
{
	bytes_text(out, version_line);
}

bool record_is_ours(struct slice data)
{
	size_t len = sizeof(version_line) - 1;

	return data.len >= len && memcmp(data.data, version_line, len) == 0;
}

static struct slice first_line(struct slice rest)
{
	const char *end = rest.len ? memchr(rest.data, '\n', rest.len) : NULL;

	return (struct slice){ rest.data, end ? (size_t)(end - rest.data) : rest.len };
}

struct slice record_get(struct slice data, const char *key)
{
	size_t key_len = strlen(key);

	if (!record_is_ours(data))
		return (struct slice){ 0 };
	while (data.len) {
		struct slice line = first_line(data);
		size_t used = line.len < data.len ? line.len + 1 : line.len;

		if (line.len > key_len && line.data[key_len] == '=' && memcmp(line.data, key, key_len) == 0) {
			size_t len = line.len - key_len - 1;

			return (struct slice){ line.data + key_len + 1, len < RECORD_VALUE_MAX ? len : RECORD_VALUE_MAX };
		}
		data = (struct slice){ data.data + used, data.len - used };
	}
	return (struct slice){ 0 };
}
