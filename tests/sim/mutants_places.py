# SPDX-License-Identifier: Apache-2.0
"""The core without the rules of places, for values that are refused again and again (mutants_table.py)."""

PLACES = [
    ("places: a second is three", [
        ("\theap_set(&env->timers, &bearer->bearer->place.timer, env->now_ns + PLACE_NS);\n",
         "\theap_set(&env->timers, &bearer->bearer->place.timer, env->now_ns + 3 * PLACE_NS);\n")], 300, "anything standalone"),
    ("places: a turn that ends unused ends no other place", [
        ("\tend_all(lock);\n", "")], 3000, "anything standalone"),
    ("places: the latest is the first", [
        ("\trequest_new(lock, bearer, &terms);\n\tplace_renew(bearer);\n",
         "\trequest_new(lock, bearer, &terms);\n\tTAILQ_REMOVE(&lock->requests, bearer->request, link);\n"
         "\tTAILQ_INSERT_HEAD(&lock->requests, bearer->request, link);\n\tplace_renew(bearer);\n")], 300, "anything standalone"),
    ("places: each refusal makes another one", [
        ("*place = place_find(lock, b->client, bytes_view(&b->value));", "*place = NULL;")], 300, "anything standalone"),
    ("places: a snapshot forgets the second", [
        ("\tentry_due(&w, \"place\", &bearer->bearer->place.timer);\n", "")], 300, "snapshots, anything standalone"),
    ("places: a snapshot forgets who was refused once", [
        ("\tplace_snapshot_notes(&b->locks, out);\n", "")], 300, "snapshots, anything standalone"),
    ("places: after a snapshot none is found", [
        ("\tif (!p->timer.place || p->lock)\n", "\tif (!p->timer.place || p->lock || lock->locks->restoring)\n")], 300,
     "snapshots, anything standalone"),
    ("places: a note stays charged", [
        ("\tcharge_give_back(&k->charge, POOL_MEMORY);\n", "")], 300, "anything standalone"),
    ("places: the first refusal leaves a place", [
        ("} else if (!place && place_attempt(lock, b->client, bytes_view(&b->value)) && place_begin(bearer, lock)) {",
         "} else if (!place && (place_attempt(lock, b->client, bytes_view(&b->value)) || true) && place_begin(bearer, lock)) {")], 300,
     "anything standalone"),
    ("places: a turn is taken though the session may not grant", [
        ("\tif (!place_is_kept(place) || !session_grants(place->locks->ensemble))\n\t\treturn false;\n",
         "\tif (!place_is_kept(place))\n\t\treturn false;\n")], 20000, "anything"),
]
