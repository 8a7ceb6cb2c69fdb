"""Results as text."""

from polyplex.cli.results import as_text


def test_texts_come_one_under_the_other_and_untouched_for_a_pipe() -> None:
    result = {"content": [{"type": "text", "text": "a\x1b[31m"}, {"type": "text", "text": "b"}]}
    assert as_text(result, for_terminal=False) == "a\x1b[31m\nb"
    assert "\x1b" not in as_text(result, for_terminal=True)


def test_structured_content_stands_in_where_there_is_no_text() -> None:
    assert as_text({"content": [], "structuredContent": {"sum": 3}}, for_terminal=False) == '{\n  "sum": 3\n}'
    both = {"content": [{"type": "text", "text": "three"}], "structuredContent": {"sum": 3}}
    assert as_text(both, for_terminal=False) == "three"


def test_what_is_no_text_has_a_line_that_says_so() -> None:
    content = [
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "x/y", "blob": "AAAA"}},
        {"type": "new", "x": 1},
    ]
    assert as_text({"content": content}, for_terminal=True).splitlines() == [
        "[image, image/png, about 3 bytes; --json has it]",
        "[resource file:///a: a]",
        "inside",
        "[resource file:///c, x/y; --json has its bytes]",
        '{"type":"new","x":1}',
    ]


def test_an_empty_result_is_an_empty_text() -> None:
    assert as_text({}, for_terminal=False) == ""
