/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <rundir>/session: the session page (protocol/session_page.h), made again at each start, NONE when the daemon ends. A
 * hand-over keeps it: the next process goes on writing the same file. After a crash the next process cannot know
 * whether a reader has seen more than stands in the ledger, so it freezes the page and makes one of its own.
 */
#pragma once

#include "protocol/session_page.h"

struct page;
struct parcel;

/*
 * The page of an earlier daemon tells processes that still map it: it has `moved` here, because this process goes on
 * with its clients and their locks; or it is NONE, because that daemon's clients are gone. Nobody may read this page
 * before this process has said its id. 0 or -errno.
 */
int page_open(struct page **ret_page, const char *rundir, const uint8_t id[SESSION_PAGE_ID_BYTES], bool moved);
/* The id of the earlier page, as text; "": none was found. */
const char *page_ended(const struct page *p);
/* The page has its name no longer. */
bool page_is_missing(const struct page *p, const char *rundir);
/*
 * Makes a page of the same id and contents, which has the name from then on. The earlier page has moved: processes that
 * map it ask for the new page. 0 or -errno.
 */
int page_again(struct page *p, const char *rundir);
/* Writes the view if it differs from the present one. Takes a NULL page. */
void page_update(struct page *p, const struct session_view *view);
/* A hand-over. Unpacking writes nothing. 0, or -EBADMSG. */
void page_pack(const struct page *p, struct parcel *parcel);
int page_unpack(struct page **ret_page, struct parcel *parcel, uint8_t ret_id[SESSION_PAGE_ID_BYTES]);
/* Leaves the page to another process. Takes NULL. */
void page_forget(struct page *p);
/* Takes NULL. */
void page_close(struct page *p);
