# SPDX-License-Identifier: Apache-2.0
"""The documents: every test, link, version and figure that they name is there, and their tables are whole."""

import glob
import itertools
import os
import re
import shutil
import subprocess
import sys

import pytest

import harness
import pages

pytestmark = pytest.mark.plain_only("it is about the documents")

WORDS = {"yes", "no", "partly", "by hand", "TTL", "–"}


def documents():
    """Every page of text in the sources."""
    found = []
    for folder, folders, files in os.walk(harness.SOURCE):
        folders[:] = [name for name in folders if name != "build" and name[0] != "."
                      and os.path.join(folder, name) != harness.build_dir()]
        found += [os.path.relpath(os.path.join(folder, name), harness.SOURCE) for name in files if name.endswith(".md")]
    assert "README.md" in found and "docs/design/README.md" in found
    return found


def tables(page):
    """Each as a list of rows, the head first, without the line below it."""
    blocks = re.findall(r"(?:^\|.*\n)+", harness.read_source(page), re.M)
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
             if not re.fullmatch(r"[| -]+", line)] for block in blocks]


def path_of(name):
    """The one file of that name below tests/."""
    (path,) = glob.glob(os.path.join(harness.SOURCE, "tests", "*", name))
    return os.path.relpath(path, harness.SOURCE)


def is_there(quoted):
    """What stands in backquotes: a test by file and name, or a mutant."""
    if quoted.startswith("mutant: "):
        return harness.names_a_test(quoted)
    file, _, test = quoted.partition("::")
    return harness.names_a_test(f"{path_of(file)}::{test}")


def test_every_feature_has_a_test():
    features = [row for table in tables("docs/FEATURES.md") for row in table[1:]]
    assert len(features) > 60
    assert not [feature for feature, test in features if not re.fullmatch(r"`test_\w+\.(py|c)::\w+`", test)]


def test_every_test_that_a_page_names_exists():
    for page in ("README.md", "SECURITY.md", *(p for p in documents() if p.startswith("docs/"))):
        named = re.findall(r"`(test_\w+\.\w+::\w+|mutant: [^`]+)`", re.sub(r"\s+", " ", harness.read_source(page)))
        assert not [name for name in named if not is_there(name)], page
        assert len(named) > 30 or page not in ("docs/FEATURES.md", "docs/design/promises.md")


def test_the_tests_of_the_design_stand_in_tables():
    """At the end of each page, where a reader who looks for a test finds it and no other reader has to step over it."""
    named = 0
    for page in (page for page in documents() if page.startswith("docs/design/")):
        text = harness.read_source(page)
        shown = [re.findall(r"`(?:test_\w+\.\w+::\w+|mutant: [^`]+)`", re.sub(r"\s+", " ", part))
                 for part in (re.sub(r"^\|.*\n", "", text, flags=re.M), text)]
        assert not shown[0], page
        assert shown[1] or page in ("docs/design/parts.md", "docs/design/words.md"), page
        named += len(shown[1])
    assert named > 300


def test_the_comparison_is_whole():
    services, others, sources = tables("docs/PEERS.md")
    assert [row[0] for row in services] == [row[0] for row in others]
    for table in (services, others):
        assert not [row for row in table if len(row) != len(table[0])]
        assert not [cell for row in table[1:] for cell in row[1:] if cell not in WORDS]
    sourced = {name for row in sources[1:] for name in row[0].split(", ") if "](https://" in row[2]}
    assert {*services[0][2:], *others[0][1:]} <= sourced
    ours = {row[1] for row in services[1:]}
    assert {"yes", "partly", "no"} <= ours, "rows in which lockbroker is behind"


def anchors(page):
    """What a link may name in a page: its headings, as web pages name them, and its own anchors."""
    text = re.sub(r"^```.*?^```", "", harness.read_source(page), flags=re.M | re.S)
    heads = [re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-")
             for head in re.findall(r"^#+ (.*)$", text, re.M)]
    return heads + re.findall(r'<a id="([^"]+)"', text)


def test_every_link_leads_somewhere():
    for page in documents():
        text = re.sub(r"^(> )?```.*?^(> )?```", "", harness.read_source(page), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
            path, _, anchor = target.partition("#")
            if "://" in target:
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            assert os.path.exists(os.path.join(harness.SOURCE, path)), f"{page}: {target}"
            assert not anchor or anchor in anchors(path), f"{page}: {target}"


def test_every_section_of_a_manual_that_is_named_exists():
    """As "lockbrokerd(8), ACCOUNTS" in pages, and as "ACCOUNTS in lockbrokerd(8)" in manuals; and pages that manuals name."""
    manuals = {name: harness.read_source(f"client-lib/man/{name}") for name in
               ("lockbroker.1", "liblockbroker.3", "lockbroker.conf.5", "lockbrokerd.8")}
    named = []
    for page in documents():
        found = re.findall(r"\b((?:lib)?lockbroker(?:d|\.conf)?)\((\d)\), ([A-Z]{3}[A-Z ]*[A-Z])", " ".join(harness.read_source(page).split()))
        named += [(page, f"{name}.{number}", section) for name, number, section in found]
    for page, text in manuals.items():
        named += [(page, f"{name}.{number}", section) for name, number, section in
                  re.findall(r"^\.Xr (\S+) (\d) ,\n([A-Z]{3}[A-Z ]*[A-Z])", text, re.M) if f"{name}.{number}" in manuals]
        named += [(page, f"{name}.{number}", section) for section, name, number in
                  re.findall(r"([A-Z]{3}[A-Z ]*[A-Z]) in\n\.Xr (\S+) (\d)", text)]
        for path in re.findall(r"\bdocs/[\w/]+\.md\b", text):
            assert os.path.exists(os.path.join(harness.SOURCE, path)), f"{page}: {path}"
    assert len(named) > 30
    assert not [(page, name, section) for page, name, section in named if f"\n.Sh {section}\n" not in manuals[name]]


def test_every_file_of_the_sources_that_is_named_exists():
    """What looks like a path below one of the folders of the sources, in the pages for developers."""
    tops = "protocol|daemon|client-lib|conf|systemd|tests|docs"
    for page in ("CONTRIBUTING.md", "README.md", *(page for page in documents() if page.startswith("docs/design/"))):
        for path in re.findall(rf"`((?:{tops})/[\w./-]*)`", harness.read_source(page)):
            assert os.path.exists(os.path.join(harness.SOURCE, path)), f"{page}: {path}"


def without_repeats(orders):
    return [order.lower() for order, _ in itertools.groupby(orders)]


def orders_in_code():
    """For each function with an atomic operation: the memory orders that it asks for, one after the other."""
    found = {}
    for top in ("protocol", "daemon", "client-lib"):
        for path in glob.glob(os.path.join(harness.SOURCE, top, "**", "*.[ch]"), recursive=True):
            function = None
            for line in harness.read_source(os.path.relpath(path, harness.SOURCE)).splitlines():
                begins = re.match(r"[a-z].*?(\w+)\((?!.*;$)", line)
                function = begins.group(1) if begins else function
                if "__atomic_" in line:
                    signal = "__atomic_signal_fence" in line
                    found.setdefault(function, []).extend(["signal"] if signal else re.findall(r"__ATOMIC_(\w+)", line))
                assert "__sync_" not in line
    return {function: without_repeats(orders) for function, orders in found.items()}


def orders_in_model():
    """The same of the table in the header of the model. A row without a function is of the one before."""
    found, functions, complete = {}, [], True
    text = harness.read_source("tests/model/weak_model.h")
    for line in text[text.index("function, operation"):].split("\n *\n", 1)[0].splitlines()[1:]:
        if re.match(r" \* {5}\w", line):
            functions = re.findall(r"(\w+)\(\)", line) + ([] if complete else functions)
        order = re.search(r"  (seq_cst|release|acquire|relaxed|signal)\b", line)
        complete = bool(order)
        for function in functions if order else []:
            found.setdefault(function, []).append(order.group(1))
    return {function: without_repeats(orders) for function, orders in found.items()}


def test_every_atomic_operation_is_in_the_table_of_the_model():
    """With the order that it asks for: there is the rule that shows what the order is for."""
    code, model = orders_in_code(), orders_in_model()
    assert {"mark", "session_page_read", "ledger_store"} < set(code)
    assert {function: model.get(function) for function in code} == code


def of_operators():
    """The commands that PROTOCOL.md calls theirs."""
    (table,) = [table for table in tables("protocol/PROTOCOL.md") if table[0][0] == "command" and len(table) > 30]
    found = {row[0].strip("`") for row in table if "operators" in row[3]}
    assert {"REVOKE", "FORCEUNLOCK", "LIMIT", "LOG"} < found
    return found


def test_errors_of_a_commands_section_are_in_the_table_of_errors():
    """A section names the errors that need a word; the table names all of them."""
    text = harness.read_source("protocol/PROTOCOL.md")
    comes_from = {row[0].strip("`"): row[2] for row in tables("protocol/PROTOCOL.md")[-1][1:]}
    assert {"BADNAME", "DENIED", "UNAVAILABLE"} < set(comes_from)
    named = 0
    for section in re.split(r"^###? ", re.search(r"^## Commands\n(.*?)^## Events and pushes", text, re.M | re.S).group(1), flags=re.M)[1:]:
        commands = [part.strip("[] ").split()[0] for part in section.splitlines()[0].split(",")]
        for code in set(re.findall(r"`-([A-Z]+)`", section if commands[0].isupper() else "")) & set(comes_from):
            named += 1
            assert comes_from[code].startswith("any") or any(f"`{command}" in comes_from[code] for command in commands), \
                f"{commands}: -{code} is not in the table of errors"
    assert named > 60


def test_what_is_for_operators_is_the_same_everywhere():
    everybody, operators = [row[1] for row in tables("SECURITY.md")[1][1:3]]
    assert {word.split()[0] for word in re.findall(r"`([A-Z][A-Z a-z]+)`", operators)} - {"CLIENT"} == of_operators()
    assert "ask back" not in everybody
    manual = harness.read_source("client-lib/man/lockbroker.1")
    (named,) = re.findall(r"The operators' commands\n\.Po (.*?)^\.Pc$", manual, re.M | re.S)
    words = " , ".join(re.findall(r"Cm (.+)", named)).split(" , ")
    assert {word.replace("-", "").upper() for word in words} == of_operators()
    (verbs,) = re.findall(r"verbs\[\] = \{(.*?)\}", harness.read_source("client-lib/cli/operators.c"), re.S)
    assert set(re.findall(r'"([A-Z]+)"', verbs)) | {"LIMIT"} == of_operators()


def test_the_daemons_page_and_its_help_name_the_same_options():
    synopsis = harness.read_source("client-lib/man/lockbrokerd.8").split(".Sh DESCRIPTION")[0]
    synopsis = synopsis.replace("\\-", "-").replace("Fl Fl ", "--")
    shown = told("--help", program="lockbrokerd")
    options = set(re.findall(r"^  (?:-\w, |    )(--[\w-]+)", shown, re.M)) - {"--config", "--option"}
    assert set(re.findall(r"--[\w-]+", synopsis)) == options


def unescaped(page):
    return harness.read_source(f"client-lib/man/{page}").replace("\\-", "-")


def told(*words, program="lockbroker"):
    return harness.run([harness.program(program), *words], check=True).stdout


def items(section, shape):
    """Of a section of lockbroker(1), those of that shape."""
    (text,) = re.findall(rf"^\.Sh {section}\n(.*?)^\.Sh", unescaped("lockbroker.1"), re.M | re.S)
    return re.findall(rf"^\.It {shape}$", text, re.M)


def options_of(command):
    """Its options as its help shows them: letter, which may be missing, and word."""
    return re.findall(r"^  (?:-(\w), )?--([\w-]+)", told(command, "--help"), re.M)


def test_the_commands_page_names_the_commands_and_their_options():
    manual = unescaped("lockbroker.1")
    commands = [line.split("\t")[0] for line in told("--complete", "").splitlines() if not line.startswith("help\t")]
    synopsis, description = manual.split(".Sh DESCRIPTION")
    assert sorted(re.findall(r"^\.Cm (\S+)", synopsis, re.M)) == sorted(commands) and len(commands) > 20
    assert sorted(re.findall(r"^\.Ss (\S+)", description, re.M)) == sorted(commands)
    named = set(re.findall(r"Fl -([a-z-]{2,})", manual))
    letters = set(re.findall(r"Fl (\w)\b", manual))
    shown = set()
    for command in commands:
        options = options_of(command)
        assert {word for _, word in options} <= named, command
        assert {letter for letter, _ in options if letter} <= letters, command
        shown |= {word for _, word in options}
    # Other spellings of those.
    assert named - shown == {"nb", "nonblocking", "timeout", "unlock", "complete"}


@pytest.mark.parametrize("command", ["lock", "hold"])
def test_the_letters_of_locks_are_in_the_synopsis(command):
    synopsis = unescaped("lockbroker.1").split(".Sh DESCRIPTION")[0]
    (text,) = re.findall(rf"^\.Cm {command}\n(.*?)(?=^\.Nm|\Z)", synopsis, re.M | re.S)
    assert set(re.findall(r"Fl (\w)\b", text)) | set("hVS") == {letter for letter, _ in options_of(command) if letter} | set("hVS")


def test_what_is_for_operators_says_what_others_do():
    """In the manual and in the help of each of their commands."""
    named = set(re.findall(r"[\w-]+", " ".join(items("OPERATORS", r"Cm (.*)")))) - {"Ar", "NAME", "N"}
    assert {word.replace("-", "").upper() for word in named} == of_operators()
    for command in named:
        assert re.search(r"or operators: root and the members of daemon.operator_group.\n\S.*\.\n", told(command, "--help")), command


def test_the_formula_of_the_daemons_page_gives_the_memory_of_its_unit():
    """With the defaults, in MiB; what is not configured is in daemon/io/socket/conn.h."""
    page = harness.read_source("client-lib/man/lockbrokerd.8")
    (formula,) = pages.claimed("client-lib/man/lockbrokerd.8", __file__)
    formula = formula.removeprefix("MemoryMax = ")
    formula = re.sub(r"   +\(.*\)$", "", formula, flags=re.M).replace("KiB", "* 1024").replace("MiB", "* 1024 * 1024")
    defaults = told("--print-config", program="lockbrokerd")
    values = {key: int(value) for key, value in re.findall(r"^(\w+) = (\d+)$", defaults, re.M)}
    bytes_max = eval(" ".join(formula.split()), {"max": max}, values)  # pylint: disable=eval-used
    (unit,) = re.findall(r"^MemoryMax=(\d+)M$", harness.read_source("systemd/lockbrokerd.service"), re.M)
    assert -(-bytes_max // 2**20) == int(unit) and f" {unit} MiB with the\ndefaults:" in page
    constants = dict(re.findall(r"^\t(CONN_\w+) = (.+?),", harness.read_source("daemon/io/socket/conn.h"), re.M))
    assert constants["CONN_UNWRITTEN_MAX"] == constants["CONN_UNPARSED_MAX"] == "88 << 20" and page.count("88 MiB") == 2


def test_the_exit_statuses_are_in_the_manual():
    code = harness.read_source("client-lib/cli/say.h")
    named = {int(n) for n in re.findall(r"\bCLI_\w+ = (\d+),", code)} - {128}
    listed = {int(n) for n in items("EXIT STATUS", r"(\d+)")}
    assert named | {126, 127} == listed and {64, 69, 70, 71, 75, 77, 79} < listed


def test_the_librarys_page_has_each_function_error_and_event():
    manual, header = unescaped("liblockbroker.3"), harness.read_source("client-lib/lockbroker.h")
    synopsis, rest = manual.split(".Sh DESCRIPTION")
    exported = sorted(re.findall(r"^\t(lb_\w+);$", harness.read_source("client-lib/liblockbroker.map"), re.M))
    assert sorted(re.findall(r"^\.F[no] (lb_\w+)", synopsis, re.M)) == exported and len(exported) > 30
    assert set(exported) <= set(re.findall(r"^\.Fn (lb_\w+)", rest, re.M)), "each is spoken of"
    for enum, start in (("lb_result", r"^\.It Dv "), ("lb_event_type", r"^\.It Dv "), ("lb_reply_type", r"^\.Dv ")):
        (body,) = re.findall(rf"^enum {enum} \{{(.*?)\}};", header, re.M | re.S)
        constants = set(re.findall(r"\bLB_[A-Z_]+\b(?=[ =,]|$)", re.sub(r"/\*.*?\*/", "", body, flags=re.S), re.M))
        found = set(re.findall(r"\bLB_[A-Z_]+\b", "\n".join(re.findall(rf"{start}.*", rest, re.M))))
        assert constants and constants <= found, (enum, constants - found)


def test_the_fuzzer_of_whole_daemons_asks_for_every_command():
    sys.path.append(os.path.join(harness.SOURCE, "tests", "fuzz"))
    import stateful
    assert stateful.commands() and not stateful.without_shape()


def test_the_version_is_the_same_everywhere():
    version = harness.read_source("VERSION").strip()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    header = harness.read_source("client-lib/lockbroker.h")
    numbers = re.findall(r"^#define LOCKBROKER_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M)
    assert ".".join(numbers) == version
    assert f'#define LOCKBROKER_VERSION "{version}"\n' in header
    assert f"<version>{version}</version>" in harness.read_source("client-lib/java/pom.xml")
    changes = re.findall(r"^## \[(\S+)\]", harness.read_source("CHANGELOG.md"), re.M)
    assert version == next(change for change in changes if change != "Unreleased")
    assert harness.read_source("debian/changelog").startswith(f"lockbroker ({version}) ")


@pytest.mark.parametrize("source, required, page, words", [
    ("VERSION", r"^(\d+\.\d+)", "SECURITY.md", r"\| (\S+)\.x \| yes \|"),
    ("client-lib/go/go.mod", r"^go (\S+)$", "docs/GO.md", r"a module for Go (\S+) and later"),
    ("Makefile", r"javac --release (\d+)", "docs/JAVA.md", r"for JDK (\d+) and later"),
    ("Makefile", r"javac --release (\d+)", "docs/JAVA.md", r"with any JDK from (\d+) on"),
    ("debian/control", r"^X-Python3-Version: >= (\S+)$", "docs/PYTHON.md", r"of pure Python, for Python (\S+) and later"),
    ("debian/control", r"^X-Python3-Version: >= (\S+)$", "docs/INSTALL.md", r"\| Python (\S+) or later"),
])
def test_a_version_that_a_page_names_is_the_one_that_is_required(source, required, page, words):
    found = [set(re.findall(pattern, harness.read_source(path), re.M)) for path, pattern in ((source, required), (page, words))]
    assert len(found[0]) == 1 and found[0] == found[1]


def test_the_placeholders_of_an_address_stand_in_one_place_each():
    """That of the maintainer is repeated where dpkg wants it, and the path of the Go module in each import."""
    places = {"packages.lockbroker.invalid": "docs/INSTALL.md", "lockbroker@lockbroker.invalid": "debian/control"}
    files = subprocess.run(["grep", "-rlP", "--exclude-dir=.git", "--exclude-dir=build", "--exclude-dir=tests",
                            "lockbroker\\.invalid(?!/go\\b)", "."],
                           cwd=harness.SOURCE, capture_output=True, text=True).stdout.split()
    assert sorted(files) == ["./debian/changelog", "./debian/control", "./docs/INSTALL.md"]
    for address, page in places.items():
        text = harness.read_source(page)
        assert "placeholder" in text and set(re.findall(r"[\w.@]+\.invalid", text)) == {address}
    assert set(re.findall(r"<(.*?)>", harness.read_source("debian/changelog"))) == {"lockbroker@lockbroker.invalid"}
    assert "`lockbroker.invalid/go`, is a placeholder" in harness.read_source("docs/GO.md")


@pytest.mark.parametrize("picture", ["32, one lock", "delegation", "hosts"])
def test_the_figures_are_drawn_from_the_table(picture):
    chart = os.path.join(harness.SOURCE, "tests", "bench", "chart.py")
    drawn = subprocess.run([sys.executable, "-B", chart, picture], capture_output=True, text=True, check=True).stdout
    assert drawn in pages.claimed("docs/PERFORMANCE.md", __file__)


def test_each_drawing_is_one_of_these():
    assert len(pages.claimed("docs/PERFORMANCE.md", __file__)) == 3


# ---- the examples of README and docs/CLIENTS.md: what is printed there is what happens ----


def test_readme_is_one_screen():
    text = harness.read_source("README.md")
    assert len(text.encode()) <= 6000 and len(text.splitlines()) <= 90


def test_the_first_commands_print_what_readme_says(standalone, tmp_path):
    """In a shell that runs its background job in the folder: ./backup says that it has the lock, and ends with its input."""
    (tmp_path / "backup").write_text("#!/bin/sh\necho begun >begun\nread -r line <gate\n")
    (tmp_path / "backup").chmod(0o755)
    os.mkfifo(tmp_path / "gate")
    (block,) = pages.claimed("README.md", __file__, "console")
    printed, background, env = "", [], harness.environment(standalone.socket)
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        command = re.sub(r" +#.*", "", line[2:])
        if command.endswith(" &"):
            background.append(harness.spawn(["sh", "-c", command[:-2]], env=env, cwd=tmp_path))
            harness.wait_until((tmp_path / "begun").exists, "the job")
        done = "" if command.endswith(" &") else subprocess.run(["sh", "-c", command], env=env, cwd=tmp_path,
                                                                capture_output=True, text=True).stdout
        printed += f"{line}\n{done}"
    with open(tmp_path / "gate", "w", encoding="ascii"):
        pass
    assert [job.wait(timeout=harness.PATIENCE) for job in background] == [1] * len(background)
    assert [re.sub(r"\d+(\.\d+)?( ?m?s)?", "N", text) for text in (printed, block)] == \
        [re.sub(r"\d+(\.\d+)?( ?m?s)?", "N", block)] * 2


def test_the_two_commands_of_readme_are_those_of_the_installation():
    """tests/booted/test_release.py runs these."""
    (ours,) = pages.claimed("README.md", __file__, "sh")
    all_steps = pages.claimed("docs/INSTALL.md", "tests/booted/test_release.py", "sh")[0]
    assert ours.splitlines() == [re.sub("  +#.*", "", line) for line in all_steps.splitlines()[:2]]


def test_the_daemon_runs_without_an_installation_as_the_page_says(tmp_path_factory):
    """In a folder with what is built already. A path of a socket is short."""
    (block,) = pages.claimed("docs/INSTALL.md", __file__, "sh")
    assert block.startswith("make\n") and block.endswith("kill %1\n")
    home = harness.fast_tmp("lockbroker-home.")
    os.symlink(harness.build_dir(), f"{home}/build")
    with open(f"{home}/Makefile", "w", encoding="ascii") as f:
        f.write("all:\n")
    done = harness.run(["bash", "-c", block + "wait\n"], cwd=home, env=os.environ | {"HOME": home})
    assert done.returncode == 0 and done.stdout.endswith("I have the lock\n"), done
    shutil.rmtree(home)


def test_the_shell_example_works(standalone, clients, tmp_path):
    """Another client is at "nightly"."""
    clients(standalone).call("LOCK", "nightly")
    (block,), env = pages.claimed("docs/CLIENTS.md", __file__, "sh"), harness.environment(standalone.socket)
    for job in re.findall(r"\./(\w+)", block):
        (tmp_path / job).write_text("#!/bin/sh\n")
        (tmp_path / job).chmod(0o755)
    for line in block.splitlines():
        done = subprocess.run(["sh", "-c", line], env=env, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stderr}"


def test_the_redis_cli_example_works(standalone):
    (block,) = pages.claimed("docs/CLIENTS.md", __file__, "console")
    lines = block.splitlines()
    assert lines[0].startswith("$ redis-cli")
    done = subprocess.run(["redis-cli", "--no-raw", "-s", standalone.socket], capture_output=True, text=True, check=True,
                          input="".join(line[2:] + "\n" for line in lines if line.startswith("> ")))
    shapes = [re.sub(r"\d{4,}", "N", line) for line in lines[1:] if not line.startswith("> ")]
    assert [re.sub(r"\d{4,}", "N", line) for line in done.stdout.splitlines()] == shapes


def test_the_python_examples_work(standalone):
    examples = pages.claimed("docs/CLIENTS.md", __file__, "python")
    assert len(examples) == 2
    library = {"PYTHONPATH": os.path.join(harness.SOURCE, "client-lib", "python")}
    for text in examples:
        done = subprocess.run([sys.executable, "-B", "-c", text], env=harness.environment(standalone.socket) | library,
                              capture_output=True, text=True)
        assert re.fullmatch(r"settling with token \d+\n", done.stdout) and done.stderr == ""
