import json

from polyplex.content.cut import cut
from polyplex.content.notices import NOTICE_TOKENS, READ_TOOL, cut_notice, read_call, shrunk_notice
from polyplex.content.tokens import tokenizer

URI = "polyplex://payload/" + "Zk3_q9-Xw" * 3


def test_a_call_can_be_copied() -> None:
    name, _, arguments = read_call(URI, lines={"first": 1}, grep='a"b').partition(" ")
    assert name == READ_TOOL
    assert json.loads(arguments) == {"uri": URI, "lines": {"first": 1}, "grep": 'a"b'}


def test_notices_cost_what_is_kept_free_for_them() -> None:
    notices = [
        shrunk_notice(tuple(f"/rows/{number}/text" for number in range(900)), URI),
        cut_notice(cut("word " * 100_000, 100), URI),
        cut_notice(cut("word " * 100_000, 1000, tail=True), URI),
        cut_notice(cut('{"a key of a record": [' + "[1], " * 100_000 + "[1]]}", 1000), URI),
    ]
    assert all(tokenizer().count(notice) <= NOTICE_TOKENS for notice in notices)
    assert "and 894 more places" in notices[0]
    assert "of 100,001 elements of 'a key of a record' shown" in notices[3]
    assert "the whole" in shrunk_notice(("",), URI)
