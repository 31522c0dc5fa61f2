# SPDX-License-Identifier: Apache-2.0
"""Servers that lack something (event.h), without each rule for them.

Some rules have no mutant, because their bounds are longer than a run of the simulator, or they are the adapter's. Unit tests show
them: a persistent directory is removed after a minute
(test_core_lacks.c::an_idle_persistent_directory_is_removed_after_a_minute), also one that was made before the server was exchanged
(test_core_lacks.c::one_that_was_made_there_is_removed_where_containers_are_known); it counts as a lasting one
(test_core_lacks.c::persistent_directories_are_limited); a number near the wrap is noticed
(test_core_lacks.c::one_whose_numbers_run_out_is_left_there_too); what servers lack is found out (test_capabilities.c)."""

SERVERS = [
    ("servers: a directory is a container where there are none", [
        ("\t\t.create = directory_lasts(d) ? ZK_PERSISTENT : ZK_CONTAINER,",
         "\t\t.create = d->flavour == FLAVOUR_KAZOO ? ZK_PERSISTENT : ZK_CONTAINER,")], 300, "old servers"),
    ("servers: a semaphore's directory is a container where there are none", [
        (".create = directory_lasts(&s->lock->directory) ? ZK_PERSISTENT : ZK_CONTAINER,", ".create = ZK_CONTAINER,")],
     300, "old servers, permits"),
    ("servers: a create that came without a czxid makes tokens", [
        ("\tif (!c->czxid) {", "\tif (false) {")], 300, "old servers"),
    ("servers: a directory that is to be removed is forgotten at a hand-over", [
        ("(directory_lasts(d) || d->timer.place) && d->state", "directory_lasts(d) && d->state")], 1000, "old servers"),
]
