"""make bench: lock and unlock pairs per second, through the C library. See README.md here."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))

import harness  # noqa: E402

CASES = [
    ("1 client", 1, "own"),
    ("32 clients, a lock each", 32, "own"),
    ("32 clients, one lock", 32, "one"),
]
# What the daemon is asked for besides its defaults.
SETTINGS = [
    ("standalone", False, {}),
    ("zookeeper", True, {}),
    ("zookeeper, no linger", True, {"locks__linger_ms": 0}),
]


def build(directory):
    program = os.path.join(directory, "bench")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", *harness.sanitizer_options(), f"-I{harness.SOURCE}/client-lib",
                    os.path.join(HERE, "bench.c"), harness.program("liblockbroker.a"), "-o", program], check=True)
    return program


def measure(program, daemon, clients, kind, seconds, rounds):
    """Medians of the rounds, each column on its own."""
    lines = [subprocess.run([program, daemon.socket, str(clients), str(seconds), kind], check=True, capture_output=True,
                            text=True).stdout.split() for _ in range(rounds)]
    return [statistics.median(map(float, column)) for column in zip(*lines)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=harness.build_dir())
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ["LOCKBROKER_BUILD"] = options.build
    sweeper = harness.begin_run()
    directory = harness.fast_tmp("bench.")
    zookeeper = harness.Zookeeper()
    try:
        program = build(directory)
        print(f"{'daemon':<22}{'clients':<26}{'pairs/s':>10}{'p50 us':>10}{'p99 us':>10}")
        for setting, uses_zookeeper, conf in SETTINGS:
            daemon = harness.Daemon(zookeeper if uses_zookeeper else None, root="/bench", **conf)
            try:
                for case, clients, kind in CASES:
                    rate, median, late = measure(program, daemon, clients, kind, options.seconds, options.rounds)
                    print(f"{setting:<22}{case:<26}{rate:>10.0f}{median:>10.0f}{late:>10.0f}", flush=True)
            finally:
                complaint = daemon.end()
            if complaint:
                print(complaint, file=sys.stderr)
                return 1
    finally:
        zookeeper.end()
        shutil.rmtree(directory, ignore_errors=True)
        sweeper.stdin.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
