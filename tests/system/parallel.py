# SPDX-License-Identifier: Apache-2.0
"""Work in threads of its own. What goes wrong there goes wrong in the test."""

import concurrent.futures
import functools
import threading

import harness


def in_thread(call, *args, **options):
    """Starts it; what is returned waits for it, and returns or raises what it has."""
    outcome = concurrent.futures.Future()

    def run():
        try:
            outcome.set_result(call(*args, **options))
        except BaseException as e:  # pylint: disable=broad-except
            outcome.set_exception(e)

    threading.Thread(target=run, daemon=True).start()
    return functools.partial(outcome.result, timeout=harness.PATIENCE)


def all_at_once(work, rows):
    """work(*row) for each of these rows, until all have ended."""
    for wait in [in_thread(work, *row) for row in rows]:
        wait(timeout=None)
