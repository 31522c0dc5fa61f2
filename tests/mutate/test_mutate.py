# SPDX-License-Identifier: Apache-2.0
"""Which places of a text a mutant may have, and what becomes of them."""

import argparse
import os
import re
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ctext  # noqa: E402
import mutate  # noqa: E402
import pytext  # noqa: E402
import trees  # noqa: E402

pytestmark = pytest.mark.plain_only("it is about a tool of the tests")


def in_c(body, operator=""):
    """The mutants of a function's body, as (before, after)."""
    text = "static int function(int a)\n{\n" + body + "\n}\n"
    return [(text[p.begin:p.end], p.after) for p in ctext.places(text) if p.operator.startswith(operator)]


def in_python(body, operator=""):
    text = "def function(a):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    return [(text[p.begin:p.end], p.after) for p in pytext.places(text) if p.operator.startswith(operator)]


@pytest.mark.parametrize("body", ["/* if (a) b = 1; */", "// b = 1;", 'return "if (a) b = 1;";', "assert(a > 1 && b);", "abort();",
                                  'log_error(INTERNAL, LOG_FIELDS("a=%d", a + 1), "1");', "static const int table[] = { 1, 2 };",
                                  "#define TWICE(x) \\\n\t((x) ? 1 : 2)", "int numbers[16];", "return sizeof(a[0]);", "struct thing *b;", "size_t i, j;",
                                  "free(b);", "bytes_free(&b->text);", "return;", "#if A && 1\n#endif"])
def test_what_stays_in_c(body):
    assert in_c(body) == []


def test_nothing_outside_of_functions_is_changed():
    assert ctext.places('enum { A = 16 };\nstatic const struct row rows[] = {\n\t{ "a", 1 },\n};\nint f(int a);\n') == []


def test_conditions_are_negated_in_c():
    assert in_c("if (a)\n\treturn;", "negate") == [("a", "!(a)")]
    assert in_c("while (next(a)) {\n}", "negate") == [("next(a)", "!(next(a))")]
    assert in_c("for (i = f(a); i < n; i++)\n\tg();", "negate") == [("i < n", "!(i < n)")]
    assert in_c("return a == b ? c : d;", "negate") == [("a == b", "!(a == b)")]
    assert in_c("x = f(a ? b : c, d);", "negate") == [("a", "!(a)")]
    assert in_c("return (a && b->c[i]) || !d;", "negate") == [("(a && b->c[i])", "!((a && b->c[i]))"), ("a", "!(a)"),
                                                               ("b->c[i]", "!(b->c[i])"), ("!d", "!(!d)")]
    assert in_c("bool ok = a && b;", "negate") == [("a", "!(a)"), ("b", "!(b)")]


def test_calls_and_assignments_are_deleted_in_c():
    assert in_c("a->b = c;\nf(a, (struct t){ 1 });\na->count++;\n*a = b;", "delete") == [
        ("a->b = c", ""), ("f(a, (struct t){ 1 })", ""), ("a->count++", ""), ("*a = b", "")]
    assert in_c("if (a)\n\tf(a);\nelse\n\tg(a);", "delete") == [("f(a)", ""), ("g(a)", "")]
    assert in_c("EACH(row, rows)\n\tf(row);", "delete") == [("f(row)", "")]
    assert in_c("switch (a) {\ncase A:\n\tf(a);\n\tbreak;\ndefault:\n\tb = a;\n}\nend:\n\tg();", "delete") == [
        ("f(a)", ""), ("b = a", ""), ("g()", "")]


def test_constants_are_changed_in_c():
    assert in_c("return 7;") == [("7", "8"), ("7", "6")]
    assert in_c("return f(0, 0x10, 0644, 5UL, 1.5);", "constant") == [
        ("0", "1"), ("0x10", "0x11"), ("0x10", "0xf"), ("0644", "0645"), ("0644", "0643"), ("5UL", "6UL"), ("5UL", "4UL")]
    assert in_c("return true;") == [("true", "false")]
    assert in_c("return a == '/';", "constant") == [("'/'", "'0'")]
    assert in_c("switch (a) {\ncase 1:\n\treturn b;\n}") == []
    assert in_c("size_t left = 3, room[4];", "constant") == [("3", "4"), ("3", "2")]


def test_a_descriptor_of_0_is_as_good_as_none():
    assert in_c("return a->fd < 0 || dir_fd >= 0;", "constant") == []
    assert in_c("a->fd = -1;", "constant") == [("1", "0")]
    assert in_c("return rc < 0 || fd > 0;", "constant") == [("0", "1"), ("0", "1")]
    assert in_c("b = -1;", "constant") == [("1", "2"), ("1", "0")]


def test_what_a_function_in_python_does_is_changed():
    assert in_python('"""if 1: pass"""\nassert a > 1\nb: int\nreturn f"{a + 1}"') == []
    assert in_python("if a and not b:\n    return 1", "negate") == [
        ("a and not b", "(not (a and not b))"), ("a", "(not (a))"), ("not b", "(not (not b))")]
    assert in_python("a.b = c\nf(a)\nn += d\nawait g()", "delete") == [
        ("a.b = c", "pass"), ("f(a)", "pass"), ("n += d", "pass"), ("await g()", "pass")]
    assert in_python("return 3, True", "constant") == [("3", "4"), ("3", "2"), ("True", "False")]
    assert pytext.places("A = 1\ndef f(a: int = 2) -> int:\n    return a\n") == []


def test_columns_are_those_of_the_text():
    text = 'def f():\n    return "ü", 1\n'
    assert [(text[p.begin:p.end], p.line, p.column) for p in pytext.places(text)][0] == ("1", 2, 17)


def test_marked_python_marks_the_lines_that_run(tmp_path, monkeypatch):
    text = '"""A module."""\nfrom __future__ import annotations\n\ndef f(a):\n    """One."""\n    if a:\n        return 1\n    return 2\n'
    monkeypatch.setenv("LOCKBROKER_MARKS", str(tmp_path))
    module = {}
    exec(compile(pytext.marked(text, "m.py"), "m.py", "exec"), module)  # noqa: S102
    assert module["f"](0) == 2
    assert [at for at, byte in enumerate((tmp_path / "m.py").read_bytes()) if byte] == [6, 8]
    assert pytext.lines(text) == {6, 7, 8}


def test_a_seed_draws_the_same_mutants_and_each_operator_in_turn():
    mutants = [m for file in ["client-lib/wire.c", "client-lib/python/lockbroker/_wire.py"] for m in mutate.mutants_of(file)]
    one, again = ([m.name for m in mutate.drawn(mutants, 7)] for _ in range(2))
    assert one == again and one != [m.name for m in mutate.drawn(mutants, 8)] and len(set(one)) == len(one)
    assert [re.match("[a-z]+", name.rpartition(":")[2])[0] for name in one[:6]] == ["negate", "delete", "constant"] * 2


@pytest.mark.parametrize("places,text", [(ctext.places, "int f(int a)\n{\n\tb = a + 1;\n\treturn a ? b : 3;\n}\n"),
                                         (pytext.places, "def f(a):\n    b = a + 1\n    return b if a else 3\n")])
def test_what_changes_elsewhere_draws_the_same_mutants(places, text):
    def ids(text, file):
        return [m.id for m in mutate.drawn([mutate.Mutant(file, text, place) for place in places(text)], 7)]
    assert len(ids(text, "daemon/x.c")) == 6
    assert ids(text, "daemon/x.c") == ids("\n\n" + text, "daemon/y.c") != ids(text.replace("3", "4"), "daemon/x.c")


def test_those_that_fewest_tests_execute_are_judged_first_and_those_that_are_none_are_replaced(monkeypatch):
    campaign = mutate.Campaign.__new__(mutate.Campaign)
    campaign.args = argparse.Namespace(only="", number=4)
    monkeypatch.setattr(campaign, "cost", lambda mutant: -mutant, raising=False)
    monkeypatch.setattr(campaign, "result_of", lambda mutant: None if mutant % 3 == 0 else f"of {mutant}", raising=False)
    done = []
    campaign.judge_all(iter(range(9)), done)
    assert done == [(2, "of 2"), (1, "of 1"), (5, "of 5"), (4, "of 4")]


def test_lines_below_a_mutant_stay_where_they_are():
    text = "void f(void)\n{\n\tg(a,\n\t  b);\n\th();\n}\n"
    mutants = [mutate.Mutant("daemon/x.c", text, place) for place in ctext.places(text)]
    assert [m.mutated().count("\n") for m in mutants] == [6, 6]
    assert mutants[0].mutated() == "void f(void)\n{\n\t\n;\n\th();\n}\n"


def test_two_mutants_of_one_line_are_told_apart():
    text = "void f(void)\n{\n\ta = b > 1 ? c - 1 : 1;\n\tg(1,\n\t  b);\n}\n"
    keys = [mutate.Mutant("daemon/x.c", text, place).key() for place in ctext.places(text)]
    assert len(set(keys)) == len(keys)
    assert ("daemon/x.c f", "constant+1", "a = b > 1 ? c - 1 : 1;", "a = b > 2 ? c - 1 : 1;") in keys
    assert ("daemon/x.c f", "delete", "g(1,", ";") in keys


def test_each_entry_of_the_equivalent_ones_is_a_mutant():
    known = {}
    for key, why in mutate.equivalents(trees.read(mutate.EQUIVALENT)).items():
        file = key[0].split()[0]
        known.setdefault(file, {m.key() for m in mutate.mutants_of(file)})
        assert key in known[file] and why, key


def test_the_table_counts_what_is_noticed_and_names_the_rest():
    text = "void f(void)\n{\n\tg(1);\n}\n"
    mutants = [mutate.Mutant("daemon/io/x.c", text, place) for place in ctext.places(text)]
    verdicts = [{"verdict": "unit", "test": "test_x", "why": ""}, {"verdict": "nobody", "test": "", "why": "", "units": 1, "systems": 2},
                {"verdict": "equivalent", "test": "", "why": "of no consequence"}]
    shown = mutate.table(list(zip(mutants, verdicts)))
    assert "| daemon/io | 3 | 1 | 0 | 1 | 0 | 1 | 50 % |" in shown
    assert "* `daemon/io/x.c:3:4:constant+1  f(): 1 -> 2`: noticed by nobody of 1 unit test programs and 2 system tests\n" in shown


class Tree:
    """One that fails so often."""

    def __init__(self, fails):
        self.fails = fails


@pytest.mark.parametrize("plain,again,counts,unsteady", [(False, True, True, []), (True, True, False, ["fails on the sources as they are"]),
                                                         (False, False, False, ["passed when it was run again"])])
def test_a_failure_counts_if_it_is_the_mutants(plain, again, counts, unsteady):
    campaign = mutate.Campaign.__new__(mutate.Campaign)
    campaign.plain, campaign.mutant = Tree(plain), Tree(again)
    result = {"unsteady": []}
    assert campaign.counts(result, "test_x", lambda tree: tree.fails, "E  it failed") == counts
    assert all(part in said for part, said in zip(unsteady, result["unsteady"])) and len(unsteady) == len(result["unsteady"])
