# SPDX-License-Identifier: Apache-2.0
"""The Java library for the tests: compiled once for all workers of the run, with its tests and the programs that use it."""

import glob
import os
import re
import subprocess

import harness

LIBRARY = os.path.join(harness.SOURCE, "client-lib/java")
TESTS = os.path.join(harness.SOURCE, "tests/java")
JUNIT = "/usr/share/java/junit4.jar:/usr/share/java/hamcrest.jar"
PEER_JARS = "/usr/share/java/curator-recipes.jar:/usr/share/java/slf4j-nop.jar"
JVM = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData"]


def javac(folder, sources, *options):
    subprocess.run(["javac", *(f"-J{option}" for option in JVM), "--release", "17", "-Xlint:all,-try,-processing", "-Werror",
                    "-d", folder, *options, *sources], check=True)


def sources(*patterns):
    return sorted(path for pattern in patterns for path in glob.glob(pattern))


def compile_in(folder):
    javac(f"{folder}/library", sources(f"{LIBRARY}/*.java", f"{LIBRARY}/lockbroker/*.java"))
    javac(f"{folder}/tests", sources(f"{TESTS}/*.java", f"{TESTS}/*/*.java", f"{LIBRARY}/s*/*.java", f"{harness.HERE}/Java*.java"),
          "-cp", f"{folder}/library:{JUNIT}")


def classes():
    return harness.once("java", compile_in)


def command(folder, program, *args, jvm=(), path=()):
    return ["java", *JVM, *jvm, "-cp", ":".join([f"{folder}/library", f"{folder}/tests", JUNIT, *path]), program, *map(str, args)]


def environment(daemon):
    return os.environ | {"LOCKBROKER_SOCKET": daemon.socket, "LOCKBROKER_OPERATOR_SOCKET": daemon.operator_socket}


def junit(folder, *names, jvm=(), env=None, path=()):
    """Runs tests of these classes; returns how many there were. A failure is an assertion's text."""
    done = subprocess.run(command(folder, "org.junit.runner.JUnitCore", *names, jvm=jvm, path=path), capture_output=True, text=True,
                          timeout=4 * harness.PATIENCE, env=env)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    return int(re.search(r"^OK \((\d+) tests?\)", done.stdout, re.M)[1])


class Driver:
    """The program of JavaDriver.java: do() gives a line and gets one."""

    def __init__(self, folder, daemon, *jvm):
        self.process = harness.spawn(command(folder, "JavaDriver", jvm=jvm), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     text=True, bufsize=1, env=environment(daemon))

    def tell(self, line):
        self.process.stdin.write(line + "\n")

    def hear(self):
        return self.process.stdout.readline().rstrip("\n")

    def do(self, line):
        self.tell(line)
        return self.hear()

    def kill(self):
        self.process.kill()
        self.process.wait()
