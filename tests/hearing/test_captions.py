"""Captions as people read them: sentences, two lines of 42 characters, and time to read."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pysubs2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.hearing.caption_cues import break_lines
from studio.hearing.timing_files import TimedLine, TimingFormat, write_timing
from studio.hearing.word_times import WordTime

LONG = (
    "Good evening. The lamp above the weir has been out since five, and nobody at the station can "
    "say who was the last to see it lit; that is why we came. Wait!"
)


def said(text: str, start_s: float = 0.0, word_s: float = 0.3) -> TimedLine:
    words, at = [], 0
    for number, word in enumerate(text.split()):
        at = text.index(word, at)
        begin_s = start_s + number * word_s
        words.append(WordTime(word, at, at + len(word), begin_s, begin_s + 0.9 * word_s))
        at += len(word)
    return TimedLine(1, "Ivo", text, start_s, start_s + len(words) * word_s, tuple(words))


@dataclass(frozen=True)
class Cue:
    start: int
    end: int
    text: str


def to_ms(written: str) -> int:
    hours, minutes, seconds = written.replace(",", ".").split(":")
    return round(1000 * (3600 * int(hours) + 60 * int(minutes) + float(seconds)))


def read(lines: list[TimedLine], format_: TimingFormat, duration_s: float) -> list[Cue]:
    """The cues of a file, read without any of the studio's code."""
    written = write_timing(lines, format_, duration_s).decode()
    found = []
    for block in written.strip().split("\n\n"):
        timing, _, text = block[block.find("\n") + 1 :].partition("\n")
        if "-->" not in timing:
            timing, _, text = block.partition("\n")
        if "-->" in timing:
            start, end = map(to_ms, timing.split(" --> "))
            found.append(Cue(start, end, re.sub("<[^>]*>", "", text)))
    return found


def words_of(cues: list[Cue]) -> str:
    return " ".join(" ".join(cue.text.split()) for cue in cues)


@pytest.mark.parametrize("format_", [TimingFormat.CAPTIONS_SRT, TimingFormat.CAPTIONS_VTT])
def test_pysubs2_reads_the_same_cues(format_: TimingFormat) -> None:
    written = write_timing([said(LONG, 1.0)], format_, 20.0).decode()
    theirs = [
        Cue(one.start, one.end, one.plaintext) for one in pysubs2.SSAFile.from_string(written)
    ]
    assert theirs == read([said(LONG, 1.0)], format_, 20.0)


@pytest.mark.parametrize("format_", [TimingFormat.CAPTIONS_SRT, TimingFormat.CAPTIONS_VTT])
@pytest.mark.parametrize("is_timed", [True, False])
def test_sentences_stand_in_two_lines_of_42(format_: TimingFormat, is_timed: bool) -> None:
    line = said(LONG, 1.0)
    if not is_timed:
        line = TimedLine(1, "Ivo", LONG, 1.0, line.end_s)
    cues = read([line], format_, 20.0)
    assert words_of(cues) == LONG
    shown = [cue.text.split("\n") for cue in cues]
    assert max(map(len, shown)) == 2
    assert max(len(row) for rows in shown for row in rows) <= 42
    assert shown[0] == ["Good evening."]
    assert shown[-1] == ["Wait!"]


def test_a_short_caption_stays_long_enough_to_be_read_and_no_longer_than_the_scene() -> None:
    lines = [said("Oh.", 1.0), said("No.", 5.0), said("Yes.", 5.5)]
    cues = read(lines, TimingFormat.CAPTIONS_SRT, 6.0)
    assert [(cue.start, cue.end) for cue in cues] == [(1000, 1833), (5000, 5500), (5500, 6000)]


def test_a_caption_is_over_after_7_s() -> None:
    slow = said("One word after the other comes very slowly.", word_s=2.0)
    cues = read([slow], TimingFormat.CAPTIONS_SRT, 20.0)
    assert len(cues) > 1
    assert max(cue.end - cue.start for cue in cues) <= 7000
    assert words_of(cues) == slow.text


def shown(line: TimedLine) -> list[str]:
    return [cue.text for cue in read([line], TimingFormat.CAPTIONS_SRT, line.end_s)]


def test_no_caption_flashes_past_where_another_place_leaves_time() -> None:
    """The draft voice says such sentences without a pause."""
    compound = "Donaudampfschifffahrtsgesellschaftskapitänswitwenrentenauszahlungsstelle"
    words = [("Die", 0.1), (compound, 3.8), ("hat", 0.2), ("heute", 0.4), ("geschlossen.", 0.9)]
    text = " ".join(word for word, _ in words)
    placed, at, at_s = [], 0, 0.0
    for word, lasts_s in words:
        placed.append(WordTime(word, at, at + len(word), at_s, at_s + lasts_s))
        at, at_s = at + len(word) + 1, at_s + lasts_s
    line = TimedLine(1, "Ivo", text, 0.0, at_s, tuple(placed), language="de")
    cues = read([line], TimingFormat.CAPTIONS_SRT, at_s)
    assert words_of(cues).replace(" ", "") == text.replace(" ", "")
    assert min(cue.end - cue.start for cue in cues) >= 833
    slow = said("One word after the other comes here.", word_s=1.1)
    assert [len(one.split()) for one in shown(slow)] == [4, 3]
    chinese = "今天天气非常好所以我们决定一起去公园散步然后在车站前面新开的咖啡馆"
    line = said(" ".join(chinese), word_s=0.4)
    places = [replace(word, start=n, end=n + 1) for n, word in enumerate(line.words)]
    line = replace(line, text=chinese, words=tuple(places), language="zh")
    assert [len(one) for one in shown(line)] == [16, 17]


def test_what_is_written_without_spaces_is_divided_by_time_and_at_syllables() -> None:
    thai = "วันนี้อากาศดีมากเราจึงตัดสินใจไปเดินเล่นที่สวนสาธารณะแล้วไปอ่านหนังสือที่ร้านกาแฟเปิดใหม่"
    line = TimedLine(1, "Som", thai, 0.0, 10.0, language="th")
    cues = read([line], TimingFormat.CAPTIONS_SRT, 10.0)
    assert max(cue.end - cue.start for cue in cues) <= 7000
    rows = [row for cue in cues for row in cue.text.split("\n")]
    assert "".join(rows) == thai
    assert {row[0] for row in rows[1:]} <= set("เแโใไ")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abc,. !日本", min_size=1, max_size=14), min_size=1, max_size=30))
def test_no_word_is_lost_and_no_time_goes_back(words: list[str]) -> None:
    text = " ".join(" ".join(words).split())
    if not text:
        return
    cues = read([said(text)], TimingFormat.CAPTIONS_SRT, 60.0)
    assert words_of(cues).replace(" ", "") == text.replace(" ", "")
    edges = [at for cue in cues for at in (cue.start, cue.end)]
    assert edges == sorted(edges)


def test_lines_are_about_as_long_as_each_other_and_wide_letters_count_twice() -> None:
    assert break_lines("The lamp above the weir has been out since five.").split("\n") == [
        "The lamp above the weir",
        "has been out since five.",
    ]
    assert [
        len(row)
        for row in break_lines("水門の上の灯りは五時から消えている。誰も見ていない。").split("\n")
    ] == [13, 13]


def test_only_what_is_heard_is_shown() -> None:
    """Pauses, sounds and stage directions are no words of a caption."""
    line = said("(whispering) How long? [pause:1s] Tell me [laugh] now.")
    spoken = tuple(word for word in line.words if word.word[0] not in "([")
    for words in (spoken, ()):
        cues = read([replace(line, words=words)], TimingFormat.CAPTIONS_SRT, 20.0)
        assert [cue.text for cue in cues] == ["How long?", "Tell me now."]
        sentences = read([replace(line, words=words)], TimingFormat.SENTENCES_VTT, 20.0)
        assert words_of(sentences) == "How long? Tell me now."


@pytest.mark.parametrize(
    "text",
    [
        "See https://example.org/" + "a" * 90 + "/" + "b" * 60 + " now.",
        "Die Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft.",
        "นี่เป็นประโยคที่ยาวมากและไม่มีช่องว่างเลยดังนั้นเราจึงต้องดูว่าคำบรรยายถูกแบ่งเป็นสองบรรทัดหรือไม่",
        "👩‍👩‍👧‍👦" * 60,
    ],
)
def test_a_word_that_no_line_holds_is_divided(text: str) -> None:
    for line in (said(text), replace(said(text), words=())):
        cues = read([line], TimingFormat.CAPTIONS_SRT, 20.0)
        rows = [row for cue in cues for row in cue.text.split("\n")]
        assert max(cue.text.count("\n") for cue in cues) <= 1
        assert max(map(len, rows)) <= 42 or "👩" in text
        assert not any(row[0] in "\u200d\u0e34\u0e35\u0e48\u0e49" for row in rows)
        assert "".join(rows).replace(" ", "") == text.replace(" ", "")
        edges = [at for cue in cues for at in (cue.start, cue.end)]
        assert edges == sorted(edges)
