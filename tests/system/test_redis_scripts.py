# SPDX-License-Identifier: Apache-2.0
"""Each script that is known, against a server of Redis: what it answers, and what is held afterwards for how long."""

import itertools
import re
import subprocess

import pytest

import harness
from tools import need

GET = "redis.call('get', KEYS[1])"
IF_OURS = [f"if {GET} == ARGV[1] then ", f"if (ARGV[1] == {GET}) then ", f"local v = {GET}; if v == ARGV[1] then "]
UNLESS_OURS = [f"if {GET} ~= ARGV[1] then return -3 end ", f"local v = {GET} if not v or v ~= ARGV[1] then return -3 end "]
SET = "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])"
SET_NX = "redis.call('set', KEYS[1], ARGV[1], 'EX', tonumber(ARGV[2]), 'NX')"
DEL, UNLINK = "redis.call('del', KEYS[1])", "redis.call('unlink', KEYS[1])"
PEXPIRE, EXPIRE = "redis.call('pexpire', KEYS[1], ARGV[2])", "redis.call('expire', KEYS[1], tonumber(ARGV[2]))"
ELSE = [" else return -2 end", " end return -2", " end", " else return false end", " end return true"]

OWN = [
    *(first + "return " + does + last for first in IF_OURS for does in (DEL, UNLINK, PEXPIRE, EXPIRE, SET) for last in ELSE),
    *(first + does + " return " + answer + last for first in IF_OURS for does in (DEL, EXPIRE)
      for answer in ("7", "true", "nil", "'OK'") for last in ELSE),
    *(first + does + last for first in IF_OURS for does in (UNLINK, PEXPIRE) for last in (" else return -2 end", " end")),
    *(first + last for first in UNLESS_OURS for does in (DEL, PEXPIRE)
      for last in (f"return {does}", f"{does} return 5", f"{does}; return 'OK';")),
    *(IF_OURS[2] + f"return {does} elseif {free} then return -5 else return -6 end"
      for does in (DEL, PEXPIRE) for free in ("v == false", "not v")),
    f"local v = {GET} if not v then return -5 elseif v == ARGV[1] then return {DEL} end return -6",
    f"local v = {GET} if not v then {SET} return 1 elseif v == ARGV[1] then {PEXPIRE} return 2 end return 0",
    f"return {SET_NX}", f"if {SET_NX} then return 1 else return 0 end",
    f"if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then return {EXPIRE} else return 0 end",
    f"local n = redis.call('setnx', KEYS[1], ARGV[1]) if n == 1 then {PEXPIRE} end return n",
    f"if redis.call('exists', KEYS[1]) == 0 then {SET} return 1 end return 0",
    IF_OURS[0] + "return 1 else return 0 end",
    IF_OURS[0] + f"{DEL} return redis.status_reply('OK') end return 0",
    f"return {{{GET}, redis.call('PTTL', KEYS[1])}}",
]

# Home-made ones, which give names to the words first.
NAMES = ["local key = KEYS[1]\nlocal value = ARGV[1]\nlocal ttl = tonumber(ARGV[2])\n",
         "local ttl, value, key = ARGV[2], tostring(ARGV[1]), KEYS[1]; "]
NAMED_IF = ["if redis.call('get', key) == value then ", "local v = redis.pcall('get', key) if v == value then "]
NAMED = [
    *(names + first + does + last for names in NAMES for first in NAMED_IF for last in (" else return -2 end", " end")
      for does in ("return redis.call('del', key)", "redis.pcall('unlink', key) return 7", "return redis.call('expire', key, ttl)",
                   "redis.call('set', key, value, 'PX', ttl) return 'OK'")),
    *(names + script for names in NAMES for script in (
        "local v = redis.call('get', key) if not v then redis.call('set', key, value, 'PX', ttl) return 1 "
        "elseif v == value then redis.call('pexpire', key, ttl) return 2 end return 0",
        "local v = redis.call('get', key) if not v or v ~= value then return 0 end redis.call('del', key) return 1",
        "return redis.call('set', key, value, 'NX', 'EX', ttl)",
        "if redis.call('setnx', key, value) == 1 then return redis.call('expire', key, ttl) else return 0 end",
        "if redis.pcall('exists', key) == 0 then redis.call('setex', key, ttl, value) return 1 end return 0",
        "for _, k in ipairs(KEYS) do if redis.call('get', k) ~= value then return 0 end end "
        "for _, k in ipairs(KEYS) do redis.call('set', k, value, 'PX', ttl) end return #KEYS")),
    "local key, lacking, again = KEYS[1], tonumber(ARGV[9]), ARGV[1]; local value = again "
    "if redis.call('get', key) == tostring(value) then return redis.call('pttl', key) end return -2",
    "local call, get = KEYS[1], ARGV[1] if redis.call('get', call) == get then return redis.call('del', call) end return 0",
]


def libraries():
    """The scripts of the catalogue by name: strings of C, which are those of Python here."""
    rows = re.findall(r'SCRIPT\("([^"]*)", "[^"]*",\s+\w+,((?:\s+"(?:[^"\\]|\\.)*")+)\)',
                      harness.read_source("daemon/core/command/script_catalogue.h"))
    return {name: "".join(eval(text) for text in re.findall(r'"(?:[^"\\]|\\.)*"', row)) for name, row in rows}


@pytest.fixture
def server(tmp_path):
    """Redis's own. Debian's redis-tools has the program under the name of a check; it is what it is called."""
    need("redis-check-rdb", "--version")
    path = tmp_path / "redis.sock"
    process = harness.spawn(["bash", "-c", 'exec -a redis-server redis-check-rdb "$@"', "sh", "--port", "0", "--unixsocket",
                             str(path), "--save", "", "--dir", str(tmp_path)], stdout=subprocess.DEVNULL)
    harness.wait_until(path.exists, "Redis to listen")
    yield str(path)
    process.kill()
    process.wait()


def left(client, name):
    """How long it is held, as far as that is the same at both; its lease was 1,000 s, and 90 are asked for."""
    ms = client.call("PTTL", name)
    return "not" if ms < 0 else "ms" if ms <= 90 else "s" if ms <= 90000 else "as before" if ms <= 1000000 else "longer"


def outcome(client, script, value, state, names, third):
    """With a value of its own: one that was refused before might have the turn when the lock is free."""
    client.call("DEL", "k")
    client.call("DEL", "l")
    for name in {"free": [], "all": ["k", "l"]}.get(state, ["k"]):
        held = "w" + value if state == "theirs" else value
        assert client.call("SET", name, held, "NX", "EX", "1000") == "OK"
    words = ["0", value, "90"] if "SELECT" in script else [value, "90", third]
    if "KEYS[3]" in script:  # all words are keys
        names, words = [*names, "90", value], []
    if "fenced" in script:
        names, words = [*names, "f"] if third == "1" else names, [value, "90", "90", third]
    answer = client.call("EVAL", script, len(names), *names, *words)
    if "fenced" in script and isinstance(answer, int):
        answer = "a token"
    told = [rounded(a) for a in answer] if isinstance(answer, list) else rounded(answer) if "pttl" in script else answer
    return told, type(answer), left(client, "k"), left(client, "l")


def rounded(answer):
    return "what is left" if isinstance(answer, int) and 900000 < answer <= 1000000 else answer


@pytest.mark.plain_only("what is answered, and for how long a lock is held")
@pytest.mark.parametrize("version", [2, 3])
def test_scripts_do_what_they_do_in_redis(standalone, clients, server, version):
    own, known, values = clients(standalone, version), [*libraries().values()], map(str, itertools.count())
    assert len(known) > 30
    with harness.Client(server, version) as theirs:
        for script in known + OWN + NAMED:
            several = [["k"], ["l", "k", "l"]] if "ipairs" in script else [["k"]]
            thirds = ["0", "1"] if '"0"' in script or "fenced" in script else ["yes", "no"] if '"yes"' in script else ["90"]
            states = ["free", "ours", "theirs", *(["all"] if len(several) > 1 else [])]
            for case in ((state, names, third) for state in states for names in several for third in thirds):
                value = next(values)
                found, expected = outcome(own, script, value, *case), outcome(theirs, script, value, *case)
                # A lease of milliseconds may be over when it is looked at.
                same = [(a, b) for a, b in zip(found, expected) if a != b and {a, b} != {"ms", "not"}]
                assert not same, (script, case, found, expected)
