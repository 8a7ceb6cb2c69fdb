import json

from polyplex.content.notices import NOTICE_TOKENS, READ_TOOL, moved_notice, read_call, shrunk_notice, summary_notice
from polyplex.content.tokens import tokenizer

URI = "polyplex://payload/" + "Zk3_q9-Xw" * 3


def test_a_call_can_be_copied() -> None:
    name, _, arguments = read_call(URI, lines={"first": 1}, grep='a"b').partition(" ")
    assert name == READ_TOOL
    assert json.loads(arguments) == {"uri": URI, "lines": {"first": 1}, "grep": 'a"b'}


def test_notices_cost_what_is_kept_free_for_them() -> None:
    notices = [
        moved_notice("text", 123_456_789, "application/json", "ab" * 32, URI),
        shrunk_notice(tuple(f"/rows/{number}/text" for number in range(900)), URI),
        summary_notice("client", 123_456_789, URI),
        summary_notice("extractive", 5, URI),
    ]
    assert all(tokenizer().count(notice) <= 2 * NOTICE_TOKENS for notice in notices)
    assert "and 894 more places" in notices[1]
    assert "the whole" in shrunk_notice(("",), URI)
    assert "123,456,789 bytes" in notices[0]
