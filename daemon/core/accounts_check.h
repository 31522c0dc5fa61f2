/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct broker;

/* Counts again what each account uses. The first difference, or NULL. */
const char *accounts_wrong(const struct broker *b);
