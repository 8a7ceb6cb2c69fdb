import pytest

from polyplex.content.graphemes import safe_border

WHOLE = [
    "e\u0301",
    "👩\u200d👩\u200d👧",
    "🇩🇪",
    "👍🏽",
    "⚠\ufe0f",
    "\r\n",
    "\ud83d\ude00",
    "각",
    "क्षि",
    "\x1b[38;5;196m",
    "\x1b]8;;http://x\x07",
]


@pytest.mark.parametrize("cluster", WHOLE)
def test_what_readers_see_as_one_is_not_broken(cluster: str) -> None:
    text = f"ab{cluster}cd"
    for at in range(len(text) + 1):
        inside = 2 < at < 2 + len(cluster)
        assert safe_border(text, at) == (2 if inside else at)


def test_flags_are_cut_between_and_not_within() -> None:
    assert [safe_border("🇩🇪🇯🇵🇫🇷", at) for at in range(7)] == [0, 0, 2, 2, 4, 4, 6]


def test_endless_marks_do_not_hold_a_cut() -> None:
    assert safe_border("a" + "\u0301" * 1000, 900) == 900
    assert safe_border("\u200d" * 1000, 500) == 500


def test_places_outside_are_brought_in() -> None:
    assert safe_border("abc", -5) == 0
    assert safe_border("abc", 9) == 3
    assert safe_border("", 0) == 0
