/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/root.h"

#include "core/znode/flavour.h"
#include "protocol/name.h"

bool root_find(const struct broker_conf *conf, size_t number, struct root *ret)
{
	while (number > 0 && number <= conf->prefix_count && !conf->prefixes[number - 1].path[0])
		number++;
	if (number > conf->prefix_count)
		return false;
	root_forget(ret);
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

void root_listed(struct root *root, const struct event *event)
{
	for (size_t i = 0; i < event->zk_answered.count; i++) {
		struct slice znode = event->zk_answered.children[i];

		if (znode.len && znode.data[0] == '.')
			continue;
		bytes_slice(&root->listed, znode);
		bytes_char(&root->listed, '\0');
	}
}

bool root_next(struct root *root, struct slice *ret_znode)
{
	if (root->looked == root->listed.len) {
		root_forget(root);
		return false;
	}
	*ret_znode = slice_of(root->listed.data + root->looked);
	root->looked += ret_znode->len + 1;
	return true;
}

void root_forget(struct root *root)
{
	bytes_free(&root->listed);
	root->looked = 0;
}
