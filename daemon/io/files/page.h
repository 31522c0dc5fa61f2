/* SPDX-License-Identifier: Apache-2.0 */
/* <rundir>/session: the session page (protocol/session_page.h), made again at each start, NONE when the daemon ends. */
#pragma once

#include "protocol/session_page.h"

struct page;

/* The page of an earlier daemon becomes NONE for processes that still map it. 0 or -errno. */
int page_open(struct page **ret_page, const char *rundir, const uint8_t id[SESSION_PAGE_ID_BYTES]);
/* Writes the view if it differs from the present one. Takes a NULL page. */
void page_update(struct page *p, const struct session_view *view);
/* Takes NULL. */
void page_close(struct page *p);
