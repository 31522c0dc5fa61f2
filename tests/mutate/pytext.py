# SPDX-License-Identifier: Apache-2.0
"""The places of a Python source that may be mutated, found in its syntax tree, and a copy of it that marks what is executed."""

import ast

from ctext import Place

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BODIES = ("body", "orelse", "finalbody")


class Finder(ast.NodeVisitor):
    """What a function does: no name of its own, no annotation, no default, no assertion."""

    def __init__(self, text):
        self.lines = text.encode().splitlines(keepends=True)
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line.decode()))
        self.text, self.places, self.function, self.body = text, [], "", (0, 0)

    def at(self, line, column):
        return self.offsets[line - 1] + len(self.lines[line - 1][:column].decode())

    def add(self, node, operator, after=None):
        begin, end = self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)
        if after is None:
            after = f"(not ({self.text[begin:end]}))"
        place = Place(node.lineno, begin - self.offsets[node.lineno - 1] + 1, operator, begin, end, after, self.function,
                      self.body)
        if self.function and place not in self.places:
            self.places.append(place)

    def visit_FunctionDef(self, node):
        outer = self.function, self.body
        self.function = node.name
        self.body = (self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset))
        for statement in node.body:
            self.visit(statement)
        self.function, self.body = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assert(self, node):
        pass

    def visit_AnnAssign(self, node):
        if node.value:
            self.add(node, "delete", "pass")
            self.visit(node.value)

    def visit_Assign(self, node):
        self.add(node, "delete", "pass")
        self.generic_visit(node)

    visit_AugAssign = visit_Assign

    def visit_Expr(self, node):
        if isinstance(node.value, (ast.Call, ast.Await)):
            self.add(node, "delete", "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_If(self, node):
        self.add(node.test, "negate")
        self.generic_visit(node)

    visit_While = visit_If

    def visit_IfExp(self, node):
        self.add(node.test, "negate-choice")
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        for value in node.values:
            if not isinstance(value, ast.BoolOp):
                self.add(value, "negate-part")
        self.generic_visit(node)

    def visit_comprehension(self, node):
        for test in node.ifs:
            self.add(test, "negate")
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            self.add(node, "constant", str(not node.value))
        elif isinstance(node.value, int):
            self.add(node, "constant+1", str(node.value + 1))
            if node.value:
                self.add(node, "constant-1", str(node.value - 1))

    def visit_JoinedStr(self, node):
        """Parts of a text have no place of their own."""


def places(text):
    finder = Finder(text)
    finder.visit(ast.parse(text))
    return sorted(finder.places)


class Marker(ast.NodeTransformer):
    """Puts a call before each statement of a function, with its line."""

    def __init__(self, module):
        self.module, self.deep, self.lines = module, 0, set()

    def marked(self, statements, first):
        done = []
        for number, statement in enumerate(statements):
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not (number == 0 and first and is_text):
                self.lines.add(statement.lineno)
                call = f"_mark({self.module!r}, {statement.lineno})"
                done.append(ast.copy_location(ast.parse(call).body[0], statement))
            done.append(statement)
        return done

    def generic_visit(self, node):
        super().generic_visit(node)
        if self.deep:
            for name in BODIES:
                statements = getattr(node, name, None)
                if isinstance(statements, list) and not isinstance(node, ast.ClassDef) and statements:
                    setattr(node, name, self.marked(statements, isinstance(node, FUNCTIONS)))
        return node

    def visit_FunctionDef(self, node):
        self.deep += 1
        node = self.generic_visit(node)
        self.deep -= 1
        return node

    visit_AsyncFunctionDef = visit_FunctionDef


MARK = '''
import os as _os
_marks = {}
def _mark(module: str, line: int) -> None:
    """A byte for each line of a module, in the folder that the test of now has."""
    folder = _os.environ.get("LOCKBROKER_MARKS")
    if not folder or (folder, module, line) in _marks:
        return
    try:
        with open(_os.open(f"{folder}/{module}", _os.O_WRONLY | _os.O_CREAT, 0o666), "wb", closefd=True) as file:
            file.seek(line)
            file.write(b"\\1")
        _os.chmod(f"{folder}/{module}", 0o666)
    except OSError:
        return
    _marks[folder, module, line] = True
'''


def lines(text):
    """Those that can be marked."""
    marker = Marker("")
    marker.visit(ast.parse(text))
    return marker.lines


def marked(text, module):
    """The source with marks: each line that is executed is a byte in the file LOCKBROKER_MARKS/`module`."""
    tree = ast.parse(text)
    tree = Marker(module).visit(tree)
    at = 0
    for number, statement in enumerate(tree.body):
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__" or number == 0 and ast.get_docstring(tree):
            at = number + 1
    tree.body[at:at] = ast.parse(MARK).body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
