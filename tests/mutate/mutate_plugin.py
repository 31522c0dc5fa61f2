# SPDX-License-Identifier: Apache-2.0
"""What pytest does for a campaign: it runs the tests of a plan in the plan's order, and writes a line for each as it ends; with
marks, what the test executed. The plan is a file that LOCKBROKER_MUTATE_PLAN names, so that the workers have it as well."""

import json
import os
import shutil
import tempfile
import time

import pytest

import covmap

PLAN = os.environ["LOCKBROKER_MUTATE_PLAN"]
with open(PLAN, encoding="utf-8") as opened:
    plan = json.load(opened)


def write(**record):
    line = json.dumps(record) + "\n"
    with open(plan["record"], "a", encoding="utf-8") as f:
        f.write(line)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if plan["tests"] is None:
        return
    order = {test: number for number, test in enumerate(plan["tests"])}
    chosen = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
    items[:] = chosen


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        item.lockbroker_failed = report.longreprtext[-1500:]
    elif report.skipped:
        item.lockbroker_skipped = True


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    seconds_max = plan["patience"].get(item.nodeid)
    for plugin in item.config.pluginmanager.get_plugins():
        if seconds_max and hasattr(plugin, "TEST_SECONDS_MAX"):
            plugin.TEST_SECONDS_MAX = seconds_max
    folder = None
    if plan["marks"]:
        folder = tempfile.mkdtemp(dir=plan["marks"])
        os.chmod(folder, 0o1777)
        os.environ["LOCKBROKER_MARKS"] = folder
    write(begun=item.nodeid)
    began = time.monotonic()
    yield
    seconds = round(time.monotonic() - began, 3)
    failed = getattr(item, "lockbroker_failed", None)
    marks = covmap.collect(folder, plan["images"]) if folder else {}
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    write(test=item.nodeid, ok=failed is None, skipped=hasattr(item, "lockbroker_skipped"), seconds=seconds, why=failed,
          sources=plan["sources"], **marks)
