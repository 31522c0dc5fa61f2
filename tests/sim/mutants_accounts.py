# SPDX-License-Identifier: Apache-2.0
"""More of mutants_table.py: what is charged to accounts, and given back."""

ACCOUNTS = [
    ("a request that ends stays charged", [
        ("\tcharge_remove(r->client->account, POOL_REQUESTS, 1);\n", "")], 100),
    ("a grant takes the place of its request and is charged again", [
        ("\tr->place = false;\n", "")], 100),
    ("a lost grant stays charged", [
        ("\tcharge_remove(g->client->account, POOL_GRANTS, 1);\n", "")], 100),
    ("a lock that nobody uses any longer stays charged", [
        ("\tcharge_give_back(&lock->charge, POOL_LOCKS);\n\tlock->directory.payer = ",
         "\tlock->charge = (struct charge){ 0 };\n\tlock->directory.payer = ")], 100),
    ("who paid first pays on when others use the lock", [
        ("\t\tif (lock->mixed)\n", "\t\tif (false)\n")], 300),
    ("the next user's request waits for good when the first one's is refused", [
        ("\t\treturn lock->request_count;\n", "\t\treturn false;\n")], 40000, "reloads"),
    ("the share of a user is not checked", [
        ("\tif (ACCOUNT_PERCENT * (mine + more) + a->all->share * others <= p->weight)\n",
         "\tif (mine + more + others <= p->total - p->reserve)\n")], 1000, "anything"),
    ("the operators' reserve is open to all", [
        ("\tif (privileged && p->used + more <= p->total)\n", "\tif (p->used + more <= p->total)\n")], 1000, "anything"),
    ("what is restored makes room for itself", [
        ("if (!locks->restoring && locks->names.count", "if (locks->names.count")], 1000, "reloads"),
]
