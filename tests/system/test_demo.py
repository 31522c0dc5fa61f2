# SPDX-License-Identifier: Apache-2.0
"""`make demo STANDALONE=1` runs, and says that all of it held."""

import os
import subprocess
import sys

import harness


def test_the_demo_holds():
    demo = os.path.join(harness.SOURCE, "tests", "demo", "demo.py")
    done = subprocess.run([sys.executable, "-B", demo, "--build", harness.build_dir(), "--standalone"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.endswith("All of it held.\n"), done.stdout
