# SPDX-License-Identifier: Apache-2.0
"""Grafana's dashboard: each of its queries finds something in what a daemon shows. And each alert is tested both ways."""

import json
import re
import subprocess

import pytest

import harness
from test_cli import run
from tools import need

pytestmark = pytest.mark.plain_only("it is about documents")
DASHBOARD = json.loads(harness.read_source("conf/grafana-dashboard.json"))
STEPS = 30


def queries():
    """Of all panels, as Grafana would send them."""
    targets = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    found = targets + [annotation["expr"] for annotation in DASHBOARD["annotations"]["list"]]
    assert len(found) > 20 and len(set(found)) == len(found)
    return [each.replace("$__rate_interval", "5m").replace("$instance", ".*") for each in found]


def scrape(daemon):
    return dict(re.findall(r"^(lockbroker_\S+) (\S+)$", run(daemon, "metrics", check=True).stdout, re.M))


def ruled(tmp_path, series, expressions):
    """What promtool says to the number of samples that each of them has, of series that go from one value to another."""
    tests = [{"expr": f"count({expr}) > bool 0", "eval_time": f"{STEPS - 1}m", "exp_samples": [{"labels": "{}", "value": 1}]}
             for expr in expressions]
    path = tmp_path / "queries.yml"  # JSON is YAML, too
    path.write_text(json.dumps({"rule_files": [], "evaluation_interval": "1m", "tests": [
        {"interval": "1m", "input_series": series, "promql_expr_test": tests}]}))
    return subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True)


def test_each_query_of_the_dashboard_finds_what_a_daemon_shows(zk, daemons, root, clients, tmp_path):
    need("promtool", "--version")
    daemon = daemons(zk, root)
    before = scrape(daemon)
    c, waiter = clients(daemon), clients(daemon)
    for _ in range(20):
        c.call("LOCK", "a"), c.call("UNLOCK", "a")
    c.call("LOCK", "a")
    waiter.send("LOCK", "a")
    harness.wait_queued(daemon, "a", 1)
    after = scrape(daemon)
    series = [{"series": (name[:-1] + "," if name.endswith("}") else name + "{") + 'instance="here",job="lockbroker"}',
               "values": f"{before.get(name, value)}x{STEPS // 2} {value}x{STEPS // 2}"} for name, value in after.items()]
    asked = queries()
    # A restart is seen when it was one.
    series.append({"series": 'lockbroker_start_time_seconds{instance="there"}', "values": f"1x{STEPS - 3} 2 2"})
    done = ruled(tmp_path, series, asked)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ruled(tmp_path, series, [*asked, "lockbroker_nonsense"]).returncode != 0, "it would have been told"
    named = set(re.findall(r"\block(?:broker)_[a-z_]+\b", " ".join(asked)))
    shown = {re.match(r"\w+", name)[0] for name in after}
    assert named <= shown, named - shown


def test_the_dashboard_counts_the_hosts_also_when_none_answers(tmp_path):
    need("promtool", "--version")
    query = next(q for q in queries() if q.startswith("count(last_over_time(lockbroker_up"))
    series = [{"series": f'lockbroker_up{{instance="{host}"}}', "values": "1 stale"} for host in ("here", "there")]
    done = ruled(tmp_path, series, [f"{query} == 2"])
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_asks_any_data_source_about_any_host():
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert set(variables) == {"datasource", "instance"} and variables["datasource"]["query"] == "prometheus"
    asks = [*DASHBOARD["annotations"]["list"], variables["instance"], *DASHBOARD["panels"], *(t for p in DASHBOARD["panels"] for t in p["targets"])]
    assert all(each["datasource"] == {"type": "prometheus", "uid": "${datasource}"} for each in asks)
    for panel in DASHBOARD["panels"]:
        assert all('instance=~"$instance"' in target["expr"] for target in panel["targets"]), panel["title"]
        assert len({target["legendFormat"] for target in panel["targets"]}) == len(panel["targets"]), panel["title"]


def test_its_panels_do_not_lie_on_each_other():
    cells = [(x, y) for panel in DASHBOARD["panels"] for place in [panel["gridPos"]]
             for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])]
    assert len(set(cells)) == len(cells) and max(x for x, _ in cells) == 23
    assert [panel["id"] for panel in DASHBOARD["panels"]] == list(range(1, len(DASHBOARD["panels"]) + 1))


@pytest.mark.release_only("test_metrics.py::test_the_rules_of_alerts_do_what_they_say has promtool run the tests; this one breaks each rule")
@pytest.mark.parametrize("alert", re.findall(r"alert: (\w+)", harness.read_source("conf/lockbroker.rules.yml")))
def test_each_alert_fires_and_does_not_fire(alert, tmp_path):
    """By its test in alerts.yml, which fails with an alert that never fires, and with one that always does."""
    need("promtool", "--version")
    rules = harness.read_source("conf/lockbroker.rules.yml")
    whole = re.search(rf"- alert: {alert}\n +expr: (\|\n(?: {{10}}.*\n)+|.*\n)", rules)
    (tmp_path / "alerts.yml").write_text(harness.read_source("tests/system/alerts.yml").replace("../../conf/", ""))
    metrics = set(re.findall(r"\block(?:broker)_[a-z_]+", rules))
    always = " or ".join(f"sum by (instance) ({name}) > -1" for name in sorted(metrics))
    for expr in "vector(0) > 1", always:
        (tmp_path / "lockbroker.rules.yml").write_text(rules.replace(whole[0], whole[0].replace(whole[1], f"{expr}\n")))
        done = subprocess.run(["promtool", "test", "rules", str(tmp_path / "alerts.yml")], capture_output=True, text=True)
        assert done.returncode == 1 and alert in done.stdout + done.stderr, (expr, done)
