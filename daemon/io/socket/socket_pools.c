/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/socket_pools.h"

const struct pool_words socket_pools_words[SOCKET_POOLS] = {
	[SOCKET_CONNECTIONS] = { "connections", "limits.clients", "close some", NULL },
	[SOCKET_PAGES] = { "pages of delegations", "limits.clients and the open files", "close some connections",
			   "pages" },
	[SOCKET_INPUT] = { "bytes of requests that cannot be served yet", "88 MiB",
			   "for now a request may have at most 8 KiB", "input_bytes" },
	[SOCKET_OUTPUT] = { "bytes of output that is not read", "88 MiB",
			    "read the output, or close some connections", "output_bytes" },
};

size_t socket_pools_pages(size_t clients, uint64_t files)
{
	uint64_t needed = clients + SOCKET_SPARE_FILES, fit = files > needed ? (files - needed) / 2 : 0;

	return fit < clients ? (size_t)fit : clients;
}
