from polyplex.transports.heads import MAX_HEAD_BYTES, MAX_HEADS, HeadCache

HEAD = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n"


def test_a_head_is_known_with_a_body_of_its_length_alone() -> None:
    heads: HeadCache[str] = HeadCache()
    assert heads.find(HEAD + b"abc") is None
    heads.remember(HEAD + b"abc", 3, "parsed")
    assert heads.find(HEAD + b"xyz") == ("parsed", b"xyz")
    for other in (HEAD, HEAD + b"ab", HEAD + b"abcd", HEAD[:-2], b"", b"\r\n\r\nabc", HEAD.lower() + b"abc"):
        assert heads.find(other) is None


def test_what_is_not_one_whole_message_is_not_remembered() -> None:
    heads: HeadCache[str] = HeadCache()
    heads.remember(HEAD + b"ab", 3, "cut")
    heads.remember(HEAD + b"abcd", 3, "surplus")
    heads.remember(b"X: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n", 0, "large")
    assert not heads._known


def test_the_memory_is_bounded() -> None:
    heads: HeadCache[int] = HeadCache()
    for number in range(MAX_HEADS * 5):
        heads.remember(b"%d\r\n\r\n" % number, 0, number)
        assert len(heads._known) <= MAX_HEADS
        assert heads.find(b"%d\r\n\r\n" % number) == (number, b"")
