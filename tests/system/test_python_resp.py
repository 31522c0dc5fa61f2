# SPDX-License-Identifier: Apache-2.0
"""The Python library's RESP: what it makes of bytes, in whatever pieces they come."""

import random

import pytest

import python_library  # noqa: F401
from lockbroker import ProtocolError
from lockbroker._resp import DEPTH_MAX, ITEMS_MAX, LINE_BYTES_MAX, REPLY_BYTES_MAX, ErrorReply, Parser, Push, encode

pytestmark = pytest.mark.plain_only("it has no daemon")

STREAM = (b"+OK\r\n:42\r\n:-7\r\n:0\r\n$5\r\nhe\r\no\r\n$0\r\n\r\n_\r\n$-1\r\n*-1\r\n-LOST a b\r\n*0\r\n%0\r\n"
          b"*2\r\n*1\r\n_\r\n$3\r\n\xc3\xa4b\r\n%2\r\n+k\r\n*1\r\n:1\r\n$1\r\nl\r\n%1\r\n:1\r\n:2\r\n"
          b">4\r\n$4\r\nlost\r\n$1\r\na\r\n:7\r\n$5\r\nlease\r\n:9223372036854775807\r\n:-9223372036854775808\r\n")
VALUES = ["OK", 42, -7, 0, "he\r\no", "", None, None, None, ErrorReply("LOST a b"), [], {},
          [[None], "äb"], {"k": [1], "l": {1: 2}}, ["lost", "a", 7, "lease"], 2**63 - 1, -2**63]


def test_values_are_read_whole():
    values = Parser().feed(STREAM)
    assert values == VALUES
    assert [type(value) for value in values[-3:]] == [Push, int, int]


def test_it_does_not_matter_where_pieces_end():
    for cut in range(len(STREAM) + 1):
        parser = Parser()
        assert parser.feed(STREAM[:cut]) + parser.feed(STREAM[cut:]) == VALUES
    parser = Parser()
    assert [value for i in range(len(STREAM)) for value in parser.feed(STREAM[i:i + 1])] == VALUES
    assert parser.feed(b"+x\r\n") == ["x"], "nothing is left over"


@pytest.mark.parametrize("wrong", [
    b"?1\r\n", b":\r\n", b":1x\r\n", b":+1\r\n", b":01\r\n", b":-0\r\n", b": 1\r\n", b":9223372036854775808\r\n",
    b"$-2\r\n", b"$x\r\n", b"$1\r\nab\r\n", b"*-2\r\n", b"*1 \r\n", b">-1\r\n", b"%-1\r\n", b"_x\r\n", b"#t\r\n",
    b",1.5\r\n", b"\r\n", b"%1\r\n*0\r\n:1\r\n", b"%1\r\n_\r\n:1\r\n", b":1\n:2\r\n",
    b"*1\r\n" * (DEPTH_MAX + 1), b"*%d\r\n" % (ITEMS_MAX + 1), b"%%%d\r\n" % (ITEMS_MAX // 2 + 1),
    b"$%d\r\n" % (REPLY_BYTES_MAX + 1), b"+" + b"x" * (LINE_BYTES_MAX + 2),
], ids=lambda data: repr(data[:12]))
def test_what_is_no_resp_is_refused(wrong):
    with pytest.raises(ProtocolError):
        Parser().feed(wrong)


def test_what_is_at_a_limit_is_not():
    assert Parser().feed(b"*1\r\n" * DEPTH_MAX + b":1\r\n")
    assert len(Parser().feed(b"*%d\r\n" % ITEMS_MAX + b"_\r\n" * ITEMS_MAX)[0]) == ITEMS_MAX
    assert len(Parser().feed(b"+" + b"x" * (LINE_BYTES_MAX - 1) + b"\r\n")[0]) == LINE_BYTES_MAX - 1
    assert Parser().feed(b"$%d\r\n" % (REPLY_BYTES_MAX - 100)) == []


def test_any_bytes_are_values_or_a_protocol_error():
    """Mutations of the stream: nothing else is raised, and nothing hangs."""
    dice = random.Random(1)
    for _ in range(5000):
        data = bytearray(STREAM)
        for _ in range(dice.randint(1, 6)):
            data[dice.randrange(len(data))] = dice.choice(b"\r\n$*%>:+-_0123456789ab\xff")
        parser = Parser()
        try:
            for begin in range(0, len(data), 17):
                parser.feed(bytes(data[begin:begin + 17]))
        except ProtocolError:
            pass


def test_requests_are_arrays_of_texts():
    assert encode("LOCK", "ä", "WAIT", 50) == b"*4\r\n$4\r\nLOCK\r\n$2\r\n\xc3\xa4\r\n$4\r\nWAIT\r\n$2\r\n50\r\n"
    assert encode("X", b"\xff".decode("utf-8", "surrogateescape")) == b"*2\r\n$1\r\nX\r\n$1\r\n\xff\r\n"
