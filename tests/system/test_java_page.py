# SPDX-License-Identifier: Apache-2.0
"""docs/JAVA.md: its examples run as they stand there, and its tables name what there is."""

import os
import re

import pytest

import harness
import java_library
import pages

pytestmark = pytest.mark.plain_only("it is another program's")

PAGE = harness.read_source("docs/JAVA.md")
EXAMPLES = pages.claimed("docs/JAVA.md", __file__, "java")


def program(number):
    """The lines of an example, in a main program: the imports in front of it."""
    lines = EXAMPLES[number].splitlines()
    imports = [line for line in lines if line.startswith("import ")]
    body = [line for line in lines if line not in imports]
    return "\n".join([*imports, f"public class Example{number} {{", "public static void main(String[] args) throws Exception {",
                      *body, "}", "}", ""])


def compile_in(folder):
    library = java_library.classes()
    for i in range(len(EXAMPLES)):
        with open(f"{folder}/Example{i}.java", "w") as f:
            f.write(program(i))
    java_library.javac(folder, java_library.sources(f"{folder}/*.java"), "-cp", f"{library}/library")


@pytest.fixture(scope="module")
def examples():
    return harness.once("java-page", compile_in)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(examples, broker, number):
    done = harness.run(java_library.command(java_library.classes(), f"Example{number}", path=[examples]),
                       env=java_library.environment(broker))
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


def test_each_method_and_class_that_the_page_names_is_there():
    sources = "".join(open(path).read() for path in java_library.sources(f"{java_library.LIBRARY}/lockbroker/*.java"))
    public = set(re.findall(r"^    (?:public |default )?(?:static )?[\w<>?, ]+ (\w+)\(", sources, re.M))
    named = set(re.findall(r"\b(?:broker|lock|held|election|LockBroker)\.(\w+)\(", PAGE))
    assert len(named) > 20 and not named - public


def test_the_exceptions_are_those_of_the_page():
    folder = os.path.join(java_library.LIBRARY, "lockbroker")
    classes = {name[:-5] for name in os.listdir(folder)
               if re.search(r"^public class \w+ extends (Runtime|LockBroker)Exception", open(os.path.join(folder, name)).read(), re.M)}
    section = PAGE.partition("## Exceptions\n")[2].partition("\n## ")[0]
    assert classes == set(re.findall(r"^\| `(\w+)` \|", section, re.M))
