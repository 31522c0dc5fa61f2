# SPDX-License-Identifier: Apache-2.0
"""What is told from noise, and what is not: made-up figures."""

import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import resources  # noqa: E402


def noisy(figures, much):
    rng = random.Random(1)
    return [x + rng.randrange(-much, much + 1) for x in figures]


def test_one_descriptor_more_with_each_look_is_told():
    assert resources.grows(noisy(range(40, 100), 3), "descriptors")


def test_memory_that_is_never_given_back_is_told():
    assert resources.grows(noisy(range(900, 2100, 20), 100), "kB")


def test_noise_is_none():
    assert not resources.grows(noisy([5000] * 60, 400), "kB")


def test_what_fills_first_and_stays_then_is_none():
    assert not resources.grows(noisy([*range(1000, 8000, 500), *[8000] * 50], 100), "kB")


def test_what_comes_and_goes_is_none():
    assert not resources.grows([40 + n % 15 * 20 for n in range(60)], "descriptors")


def test_a_little_is_none():
    assert not resources.grows(list(range(40, 43)) * 20, "descriptors")
    assert not resources.grows([900 + 2 * n for n in range(60)], "kB")


def test_too_few_prove_nothing():
    assert not resources.grows(list(range(40, 40 + resources.SAMPLES_MIN - 1)), "descriptors")
