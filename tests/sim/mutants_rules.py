# SPDX-License-Identifier: Apache-2.0
"""The core without its rules of access, its secrets, and its limit of new names (mutants_table.py)."""

RULES = [
    ("rules: the last one that matches counts", [
        ("const struct rule *r = &rules->list[i];\n\n\t\tif (!(r->verbs",
         "const struct rule *r = &rules->list[rules->count - 1 - i];\n\n\t\tif (!(r->verbs")], 100, "anything"),
    ("rules: one that denies is not heeded", [
        ("\t\treturn r->allows;\n", "\t\treturn true;\n")], 100, "anything"),
    ("rules: a group is looked for among users", [
        ("if (peer->groups[i] == r->low)", "if (peer->uid == r->low)")], 100, "anything"),
    ("rules: a range of users has no end", [
        ("peer->uid >= r->low && peer->uid <= r->high", "peer->uid >= r->low")], 100, "anything"),
    ("rules: every process is of the unit", [
        ("return is_in_unit(peer, r);", "return true;")], 100, "anything"),
    ("rules: who is of an unknown unit is in none", [
        (" || (unit_is_unknown(peer->unit) && !r->allows);", ";")], 100, "anything"),
    ("rules: who is of an unknown unit is in all", [
        ("(unit_is_unknown(peer->unit) && !r->allows)", "unit_is_unknown(peer->unit)")], 100, "anything"),
    ("rules: they are for all names", [
        (" || !glob_matches(r->glob, name, &steps)", "")], 100, "anything"),
    ("rules: by default everybody may ask for what others hold", [
        ("access.c", "return verb != RULE_revoke && verb != RULE_limit;", "return verb != RULE_limit;")], 300, "anything"),
    ("rules: they are for operators, too", [
        ("\tif (peer->operator)\n\t\treturn true;\n", ""),
        ("!peer->operator && i < rules->count", "i < rules->count")], 100, "anything"),
    ("rules: whose groups are not known is in none", [
        ("return !peer->groups_known && !r->allows;", "return false;")], 300, "snapshots, anything"),
    ("rules: other ones do not concern who is connected", [
        ("\t\tb->env.rules++;\n", "")], 100, "anything"),
    ("rules: readers are asked for their right to write", [
        ("return verb == RULE_lock && terms->mode == MODE_SHARED ? RULE_shared : verb;", "return verb;")], 100, "anything"),
    ("rules: an MLOCK finds out what it may not have when it comes to it", [
        ("(!again && denies_any(m, &no)) || ", "")], 300, "anything"),
    ("rules: whether one may look is not asked", [
        ("\tif (client_may_look(c, lock, p->account))\n", "")], 100, "anything"),
    ("rules: users of other hosts are one's own", [
        ("return account == c->account ||", "return !account || account == c->account ||")], 300, "anything"),
    ("rules: all units of a user are one's own", [
        ("return account == c->account ||", "return (account && account->uid == c->uid) ||")], 1000, "anything"),
    ("rules: CLIENT LIST shows those of other users", [
        ("(client_is_own(l->client, c) || client_is_operator(l->client))", "true")], 100, "anything"),
    ("rules: CLIENT LIST shows those of other units", [
        ("(client_is_own(l->client, c) ||", "(c->uid == l->client->uid ||")], 1000, "anything"),
    ("rules: what other units hold may be revoked as one's own", [
        ("\t\tif (!client_is_own(c, g->client))\n", "\t\tif (g->client->uid != c->uid)\n")], 3000, "anything"),
    ("rules: observers are told the data of leaders", [
        ("looks ? bytes_view(&known->data) : SLICE(\"\")", "bytes_view(&known->data)")], 300, "anything"),
    ("secrets: names of znodes have sessions", [
        ("\t\tcut = uuid;\n", "\t\tcut = 0;\n")], 100, "anything"),
    ("secrets: names of kazoo's have sessions", [
        ("\t\tcut = digits;\n", "\t\tcut = 0;\n")], 300, "anything"),
    ("secrets: everybody is told the sessions of hosts", [
        ("answer.c", "\tif (client_is_operator(q->client))\n\t\tbytes_format(&session",
         "\tbytes_format(&session")], 100, "anything"),
    ("secrets: the log has a session in a letter's id", [
        ("letter %q\", shown(id));", "letter %q\", id);\n\t(void)shown;")], 1000, "anything"),
    ("secrets: the log has the name of a znode that is deleted by force", [
        ("revocation.c", "contender_shown(bytes_view(&child->name))", "bytes_view(&child->name)")], 3000, "anything"),
    ("secrets: the log has the name of a znode that somebody deleted", [
        ("contender_shown(slice_of(c->name))", "slice_of(c->name)")], 3000, "anything"),
    ("names: who meets no directory, because another host has removed it, gives up", [
        ("++c->join_tries > JOIN_TRIES", "++c->join_tries > 0")], 300),
    ("names: the timer of an idle directory is forgotten at a hand-over", [
        ("\t\tlock_restore_idle_directory(lock);\n", "\t\t(void)0;\n")], 1000, "snapshots"),
    ("names: they are not limited", [
        ("if (!limits(all)->new_names_per_s || d->naming.state == NAMING_PAID || is_paid_for(d)) {", "if (is_paid_for(d) || true) {")], 300, "anything"),
    ("names: directories that stay for good have no limit", [
        ("if (refusal) {\n\t\tdirectory_fail", "if (false) {\n\t\tdirectory_fail")], 1000, "anything"),
    ("names: the ledger does not know how many directories stay for good", [
        ("\tledger_lasting(all->env->ledger, lasting_count(all));\n", "\t(void)all;\n")], 1000, "kills"),
    ("names: whoever pays from now on does not count", [
        ("charge.c", "\tnames_follow(d);\n", "")], 3000, "anything"),
    ("names: what was charged is given back at once", [
        ("n->count && n->drained_ns + each_ns <= now_ns;", "n->count && each_ns;")], 300, "anything"),
]
