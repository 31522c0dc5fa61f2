/* SPDX-License-Identifier: Apache-2.0 */
/* The work that events have left (port/work.h), each kind by the module that it belongs to. */
#pragma once

struct broker;

/* Does a piece of it, for the user whose turn it is. */
void piece_do(struct broker *b);
