# SPDX-License-Identifier: Apache-2.0
"""The core without what makes a script act for its own value only (mutants_table.py)."""

SCRIPTS = [
    ("scripts: the value is not compared", [
        ("cmd_script.c", "\t\t*ret = SCRIPT_THEIRS;", "\t\t*ret = SCRIPT_OURS;")], 300, "anything standalone"),
    ("scripts: of several, each is released, whatever its value", [
        ("return bearer_grant_of(lock_find(r->client->locks, name), r->client, r->argv[0]);",
         "return bearer_grant(lock_find(r->client->locks, name), r->client);")], 300, "anything standalone"),
    ("scripts: several are extended though one is not its own", [
        ("\t\tif (is != SCRIPT_OURS) {\n\t\t\tanswer(r, is);\n\t\t\treturn;\n\t\t}\n", "")], 300, "anything standalone"),
    ("scripts: a lease that is extended by some time begins anew", [
        ("\t\tleft_ns = grant_lease_rest_ns(g);\n", "\t\tleft_ns = LIMIT_MS_MAX * NS_PER_MS;\n")], 300, "anything standalone"),
]
