# SPDX-License-Identifier: Apache-2.0
"""The checker bites: made-up histories, each with one broken promise."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import checker  # noqa: E402

MS, T = checker.MS, 6 * checker.SECOND


class Story:
    """One client's history, told in milliseconds."""

    def __init__(self, worker="w1", host="alpha", killed=False):
        self.history = checker.History(worker, [], killed)
        self.add(f"start {0} {host}")

    def add(self, line):
        self.history.lines.append(line + "\n")
        return self

    def ask(self, at, wait=-1, name="a"):
        return self.add(f"ask {at * MS} {name} {wait}")

    def answer(self, at, token, result="ok", name="a"):
        return self.add(f"answer {at * MS} {name} {result} {token}")

    def valid(self, at, ms, name="a"):
        return self.add(f"valid {at * MS} {at * MS} {name} {ms}")

    def hold(self, begin, token, ms=4000):
        return self.ask(begin).answer(begin, token).valid(begin, ms)

    def unlock(self, at, token, result="ok", name="a"):
        return self.add(f"unlock {at * MS} {at * MS} {name} {token} {result}")

    def lost(self, at, token, name="a"):
        return self.add(f"event {at * MS} lost {name} {token} 0")

    def say(self, word, at):
        return self.add(f"{word} {at * MS}")


def fault(kind, begin, end, *hosts, **flags):
    return checker.Fault(kind, begin * MS, end * MS, list(hosts), **flags)


def check(*stories, faults=()):
    return checker.Check([s.history for s in stories], list(faults), T).run()


def found(*stories, faults=()):
    return [v.what for v in check(*stories, faults=faults).violations]


CUT = fault("cut off", 0, 10000, "alpha", loses=True)


def test_a_good_run_is_good():
    one = Story().hold(0, 1024).unlock(10, 1024).hold(30, 1026).unlock(40, 1026).say("end", 50)
    two = Story("w2", "beta").hold(11, 1025).unlock(20, 1025).ask(21, 5).answer(27, 0, "taken").say("end", 50)
    report = check(one, two)
    assert report.violations == []
    assert len(report.grants) == 3 and report.figures["hand-offs"] == 2


def test_two_holders():
    one, two = Story().hold(0, 1).unlock(10, 1).say("end", 11), Story("w2").hold(9, 2).unlock(20, 2).say("end", 21)
    assert found(one, two) == ["two holders"]


def test_two_holders_of_different_locks_are_fine():
    one = Story().hold(0, 1).unlock(10, 1).say("end", 11)
    two = Story("w2").ask(5, name="b").answer(5, 2, name="b").valid(5, 100, "b").unlock(8, 2, name="b").say("end", 9)
    assert found(one, two) == []


def test_a_short_holder_does_not_hide_a_long_one():
    one = Story().hold(0, 1).unlock(30, 1).say("end", 31)
    two = Story("w2").hold(5, 2).unlock(6, 2).say("end", 31)
    three = Story("w3").hold(20, 3).unlock(21, 3).say("end", 31)
    assert found(one, two, three) == ["two holders", "two holders"]


def test_what_is_not_proven_any_more_is_no_overlap():
    one = Story().hold(0, 1, ms=100).lost(9000, 1).unlock(9001, 1, "lost").say("end", 9002)
    two = Story("w2", "beta").hold(101, 2).unlock(110, 2).say("end", 120)
    assert found(one, two, faults=[fault("stopped", 0, 9000, "alpha", loses=True, stopped=True)]) == []
    assert "told late" in found(one, two, faults=[CUT])


def test_a_holder_is_one_until_it_hears_of_the_end_of_its_connection():
    one = Story().hold(0, 1).say("gone", 10).say("end", 11)
    killed = [fault("daemon killed", 9, 10, closes=True)]
    assert found(one, Story("w2").hold(11, 2).unlock(12, 2).say("end", 13), faults=killed) == []
    assert found(one, Story("w2").hold(9, 2).unlock(12, 2).say("end", 13), faults=killed) == ["two holders"]


@pytest.mark.parametrize("token, what", [(1, "token repeats"), (0, "token"), (-5, "token")])
def test_a_bad_token(token, what):
    one, two = Story().hold(0, 1).unlock(1, 1).say("end", 2), Story("w2").hold(3, token).unlock(4, token).say("end", 5)
    assert what in found(one, two)


def test_who_keeps_a_lock_has_it_again_with_the_same_token():
    def kept(at):
        return Story().hold(0, 1).unlock(1, 1).hold(at, 1).unlock(at + 1, 1).say("end", 9)

    assert found(kept(2)) == []
    between = Story("w2").hold(2, 2).unlock(3, 2).say("end", 9)
    assert "token repeats" in found(kept(4), between)


def test_a_token_that_shrinks():
    one, two = Story().hold(0, 9).unlock(1, 9).say("end", 2), Story("w2").hold(3, 8).unlock(4, 8).say("end", 5)
    assert found(one, two) == ["token shrinks"]


def test_a_forgotten_waiter():
    assert found(Story().ask(0)) == ["forgotten"]
    assert found(Story(killed=True).ask(0)) == []
    assert found(Story().hold(0, 1).say("die", 5)) == []


def test_a_wait_beyond_all_measure():
    assert found(Story().ask(0).answer(200000, 1).unlock(200001, 1).say("end", 200002)) == ["long wait"]


def test_bounded_waits_end_in_time():
    assert found(Story().ask(0, 100).answer(50, 0, "taken").say("end", 60)) == ["gave up early"]
    assert found(Story().ask(0).answer(50, 0, "taken").say("end", 60)) == ["gave up early"]
    refused = Story().ask(0).answer(9000, 0, "unavailable").say("end", 9001)
    assert found(refused, faults=[fault("restored", 100, 9100, refuses=True)]) == []
    late = Story().ask(0, 100).answer(9000, 0, "taken").say("end", 9001)
    assert found(late) == ["waited too long"]
    assert found(late, faults=[fault("stopped", 0, 8900, "alpha", stopped=True)]) == []


def lost(story):
    return story.lost(4000, 1)


def test_only_a_fault_that_refuses_excuses_a_refusal_and_no_token_that_shrinks():
    restored = fault("ensemble restored", 100, 200, refuses=True, loses=True)
    one = Story().ask(110).answer(120, 0, "unavailable").ask(130).answer(140, 0, "taken").say("end", 1150)
    assert found(one, faults=[restored]) == ["gave up early"]
    assert found(one) == ["gave up early"] * 2
    one = Story().hold(0, 5).unlock(10, 5).hold(300, 4).unlock(310, 4).say("end", 320)
    assert found(one, faults=[restored]) == ["token shrinks"]


def test_a_loss_is_told_once():
    assert found(lost(Story().hold(0, 1)).unlock(4001, 1, "lost").say("end", 4002), faults=[CUT]) == []
    twice = lost(lost(Story().hold(0, 1))).unlock(4001, 1, "lost").say("end", 4002)
    assert found(twice, faults=[CUT]) == ["lost twice"]
    after = Story().hold(0, 1).unlock(4001, 1, "lost").lost(4001, 1).say("end", 4002)
    assert found(after, faults=[CUT]) == []
    assert found(lost(Story().hold(0, 1)).unlock(4001, 1, "lost").lost(4002, 1).say("end", 4003),
                 faults=[CUT]) == ["lost twice"]


def test_a_loss_is_told_by_the_next_lock_too_and_then_no_more():
    told = lost(Story().hold(0, 1)).ask(4001).answer(4001, 0, "lost")
    assert found(told.say("end", 4002), faults=[CUT]) == []
    again = lost(Story().hold(0, 1)).unlock(4001, 1, "lost").ask(4002).answer(4002, 0, "lost").say("end", 4003)
    assert found(again, faults=[CUT]) == ["lost what it had not"]


def test_a_loss_that_is_not_told():
    assert found(Story().hold(0, 1).unlock(4001, 1, "lost").say("end", 4002), faults=[CUT]) == ["loss not told"]


def test_a_loss_that_is_taken_back():
    assert found(lost(Story().hold(0, 1)).unlock(4001, 1).say("end", 4002), faults=[CUT]) == ["released what was lost"]
    assert found(Story().hold(0, 1).valid(4000, 0).unlock(4001, 1).say("end", 4002)) == ["released what was lost"]
    in_the_same_ms = Story().hold(0, 1).valid(4000, 0).add(f"unlock {4000 * MS + 5} {4000 * MS + 9} a 1 ok").say("end", 4002)
    assert found(in_the_same_ms) == []
    assert "valid after loss" in found(
        lost(Story().hold(0, 1)).valid(4001, 5).unlock(4001, 1, "lost").say("end", 4002), faults=[CUT])
    assert "two grants" in found(
        lost(Story().hold(0, 1)).ask(4001).answer(4002, 2).unlock(4003, 2).say("end", 4004), faults=[CUT])


def test_a_loss_of_nothing():
    assert found(Story().lost(10, 1).say("end", 11)) == ["lost what it had not"]
    assert found(Story().hold(0, 1).unlock(5, 1).lost(10, 1).say("end", 11)) == ["lost what it had not"]


def test_a_loss_without_a_reason():
    one = lost(Story().hold(0, 1)).unlock(4001, 1, "lost").say("end", 4002)
    assert found(one) == ["lost for nothing"]
    assert found(one, faults=[fault("cut off", 0, 10000, "beta", loses=True)]) == ["lost for nothing"]
    assert found(one, faults=[fault("leader killed", 0, 10000)]) == ["lost for nothing"]


def test_a_loss_told_after_another_host_was_granted():
    one = Story().hold(0, 1, ms=3900).lost(4000, 1).unlock(4001, 1, "lost").say("end", 4002)
    two = Story("w2", "beta").hold(3950, 2).unlock(3960, 2).say("end", 4000)
    assert found(one, two, faults=[CUT]) == ["told too late"]
    assert found(one, two, faults=[CUT, fault("expired", 3900, 4000, "alpha", loses=True, expired=True)]) == []


def test_a_lock_kept_through_an_outage():
    outage = fault("cut off", 100, 7300, "alpha", loses=True, must_lose=True)
    late, early = (Story().hold(0, 1, 9000).unlock(at, 1).say("end", 8000) for at in (6000, 3000))
    assert found(late, faults=[outage]) == ["kept through an outage"]
    assert found(early, faults=[outage]) == []


def test_a_third_party_that_ends_a_session_is_an_excuse_for_an_overlap_but_not_for_tokens():
    expired = fault("expired", 100, 200, "alpha", loses=True, expired=True)
    one = Story().hold(0, 1).lost(180, 1).unlock(181, 1, "lost").say("end", 182)

    def with_another(at, token):
        return found(one, Story("w2", "beta").hold(at, token).unlock(at + 1, token).say("end", 300), faults=[expired])

    assert with_another(101, 2) == []
    assert "two holders" in with_another(90, 2)
    assert "token repeats" in with_another(101, 1)


def test_what_was_granted_on_an_ended_session_may_be_read_a_little_later():
    expired = fault("expired", 100, 200, "alpha", loses=True, expired=True)
    newer = Story("w2", "beta").hold(202, 2).unlock(203, 2).say("end", 300)

    def read_late(valid_ms):
        late = Story().hold(204, 1, valid_ms).lost(205, 1).unlock(206, 1, "lost").say("end", 207)
        return found(newer, late, faults=[expired])

    assert read_late(0) == []
    assert "token shrinks" in read_late(4000)


def test_what_a_daemon_granted_before_it_was_stopped_may_be_read_when_it_goes_on():
    stopped = fault("daemon stopped", 100, 200, "alpha", loses=True, stopped=True)
    other = Story("w2", "beta").hold(190, 2).unlock(191, 2).say("end", 300)

    def read_late(at, valid_ms):
        late = Story().hold(at, 1, valid_ms).lost(at + 1, 1).unlock(at + 2, 1, "lost").say("end", at + 3)
        return found(other, late, faults=[stopped])

    assert read_late(201, 0) == []
    assert "token shrinks" in read_late(201, 4000)
    assert "token shrinks" in read_late(2000, 0)


def test_what_the_next_session_granted_before_the_end_of_its_fault_is_proven_as_usual():
    expired = fault("session ended", 100, 200, "alpha", loses=True, expired=True)
    killed = fault("daemon killed", 4700, 4800, "alpha", closes=True, loses=True)

    def told_of(start, asked):
        story = Story().hold(start, 1).valid(asked, 3300).lost(4750, 1).say("gone", 4751).say("end", 4752)
        return found(story, faults=[expired, killed])

    assert told_of(150, 4700) == []
    assert told_of(50, 4700) == ["told late"], "what was held before must be told when the session ends"
    assert told_of(150, 199) == ["told late"]


def test_an_unlock_that_finds_nothing():
    assert found(Story().hold(0, 1).unlock(4, 1, "notheld").say("end", 5)) == ["unlock"]


def test_the_events_around_a_violation_are_shown():
    one, two = Story().hold(0, 1).unlock(10, 1).say("end", 11), Story("w2").hold(9, 2).unlock(20, 2).say("end", 21)
    report = check(one, two, faults=[CUT])
    shown = "\n".join(report.around(report.violations[0]))
    assert "answer" in shown and "w2" in shown and "cut off alpha" in shown


def test_a_connection_ends_for_nothing():
    story = Story().hold(0, 1).say("gone", 500).say("end", 600)
    assert found(story) == ["connection lost for nothing"]
    assert found(story, faults=[fault("hand-over", 400, 600, "alpha")]) == ["connection lost for nothing"]
    assert found(story, faults=[fault("daemon killed", 400, 450, "alpha", closes=True)]) == []
    assert found(story, faults=[fault("daemon killed", 400, 450, "beta", closes=True)]) == ["connection lost for nothing"]
