/* SPDX-License-Identifier: Apache-2.0 */
/* A local stream socket to a service that answers in lines. Blocking: a process of the load has nothing else to do. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { LINE_BYTES_MAX = 16384, LINE_REQUEST_MAX = 1024 };

struct line {
	int fd;
	size_t len, used; /* bytes of `in`, and those of them that were handed out */
	char in[LINE_BYTES_MAX];
};

struct line_request {
	uint32_t number; /* what it was put together for */
	size_t len;      /* 0: not yet */
	char text[LINE_REQUEST_MAX];
};

/* 0, or -1 having said why; so do all. */
int line_connect(struct line *l, const char *path);
void *line_open(const char *path); /* a new one, or NULL */
int line_send(struct line *l, const void *data, size_t len);
/*
 * Texts up to NULL, one after the other; and as the words of one RESP request. At most LINE_REQUEST_MAX bytes. Without
 * printf, which takes longer than some services do.
 */
int line_texts(struct line *l, const char *text, ...) __attribute__((sentinel));
int line_words(struct line *l, const char *word, ...) __attribute__((sentinel));
/* Words that are the same for the same number: put together only for another number than the last. */
int line_same_words(struct line *l, struct line_request *r, uint32_t number, const char *word, ...)
	__attribute__((sentinel));
/* Exactly so many bytes; NULL: the end, or an error. They stand until the next call. */
const char *line_bytes(struct line *l, size_t len);
/* The next line, NUL in place of its end. */
const char *line_read(struct line *l);
