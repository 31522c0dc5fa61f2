/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration means for the broker. Strings stay those of the configuration, which must outlive their use. */
#pragma once

#include <stdbool.h>

#include "core/port/conf.h"

struct conf;

/* All but the prefixes and what the configuration does not tell. */
void broker_conf_fill(struct broker_conf *b, const struct conf *c, bool standalone);
/* `prefixes` has room for c->prefix_count. */
void broker_conf_prefixes(struct broker_conf *b, const struct conf *c, struct broker_prefix *prefixes);
/* The fields that may change while the broker runs. */
void broker_conf_change(struct broker_conf *b, const struct conf *c);
