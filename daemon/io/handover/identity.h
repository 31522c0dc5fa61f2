/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot change from one process to the next: where things are, who the host is, what the names of locks stand for.
 * The old process says it at once, so that the new one can refuse while the old one serves.
 */
#pragma once

#include <stdbool.h>

struct conf;
struct parcel;

enum { IDENTITY_ERROR_MAX = 512 };

void identity_pack(struct parcel *p, const struct conf *conf, bool standalone);
/* True, with a sentence: this configuration is of another daemon than the one that packed it. */
bool identity_differs(const struct parcel *p, const struct conf *conf, bool standalone, char error[IDENTITY_ERROR_MAX]);
