/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/root.h"

#include "core/znode/flavour.h"
#include "protocol/bytes_format.h"
#include "protocol/name.h"

bool root_find(const struct broker_conf *conf, size_t number, struct root *ret)
{
	while (number > 0 && number <= conf->prefix_count && !conf->prefixes[number - 1].path[0])
		number++;
	if (number > conf->prefix_count)
		return false;
	ret->number = number;
	ret->path = slice_of(number ? conf->prefixes[number - 1].path : conf->root);
	ret->prefix = slice_of(number ? conf->prefixes[number - 1].prefix : "");
	return true;
}

bool root_lock(const struct broker_conf *conf, const struct root *root, struct slice znode, struct bytes *name,
	       enum flavour *ret_flavour)
{
	struct bytes here = { 0 }, place = { 0 };
	bool lives;

	bytes_slice(name, root->prefix);
	if (!name_decode(znode, name) || !name_valid(bytes_view(name)) || !flavour_has_place(conf, bytes_view(name)))
		return false;
	bytes_format(&here, "%s/%s", root->path, znode);
	*ret_flavour = flavour_place(conf, bytes_view(name), &place);
	lives = slice_eq(bytes_view(&here), bytes_view(&place));
	bytes_free(&here);
	bytes_free(&place);
	return lives;
}
