/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of Redis that some lock libraries need and that are not here: who sends one is told what is missing. */
#pragma once

#include "protocol/slice.h"

/* Why that command, in any case, is not here: a sentence that lives for ever. NULL: it is none of them. */
const char *uncovered(struct slice command);
