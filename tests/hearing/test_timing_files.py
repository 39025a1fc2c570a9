"""Files of word times, read by other programs' readers and by eye."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest

from studio.dialog.formats.dialog_file import import_dialog
from studio.dialog.model import Dialog, Speech
from studio.hearing.timing_files import (
    TimedLine,
    TimingFormat,
    timing_format_of,
    write_timing,
)
from studio.hearing.visemes import list_visemes, shapes_of
from studio.hearing.word_times import PhonemeTime, WordTime

FIRST = TimedLine(
    1,
    "Ann",
    "Hello, “you”! It's &me&. Bye",
    0.0,
    3.0,
    (
        WordTime("Hello", 0, 5, 0.1, 0.5),
        WordTime("you", 8, 11, 0.6, 0.9),
        WordTime("It's", 14, 18, 1.5, 1.7),
        WordTime("me", 20, 22, 1.7, 2.0),
        WordTime("Bye", 25, 28, 2.2, 2.6),
    ),
    (
        PhonemeTime("h", 0.1, 0.2),
        PhonemeTime("ə", 0.2, 0.25),
        PhonemeTime("l", 0.25, 0.3),
        PhonemeTime("ˈoʊ", 0.3, 0.5),
        PhonemeTime("j", 0.6, 0.7),
        PhonemeTime("uː", 0.7, 0.9),
        PhonemeTime("m", 1.7, 1.8),
        PhonemeTime("iː", 1.8, 2.0),
        PhonemeTime("b", 2.2, 2.3),
        PhonemeTime("ˈaɪ", 2.3, 2.6),
    ),
    "en",
)
SECOND = TimedLine(2, 'Bo "B"', "Yes", 3.0, 4.0, (WordTime("Yes", 0, 3, 3.2, 3.2),), ())
LINES = (FIRST, SECOND)


def written(format_: TimingFormat, lines: tuple[TimedLine, ...] = LINES) -> str:
    return write_timing(lines, format_, 4.0).decode()


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("a/scene.TextGrid", TimingFormat.TEXT_GRID),
        ("scene.textgrid", TimingFormat.TEXT_GRID),
        ("scene.words.json", TimingFormat.JSON),
        ("my.scene.rhubarb.tsv", TimingFormat.RHUBARB),
        ("x.sentences.vtt", TimingFormat.SENTENCES_VTT),
        ("x.words.srt", TimingFormat.WORDS_SRT),
        ("x.vtt", None),
        ("x.json", None),
        ("words.tsv", None),
    ],
)
def test_formats_by_suffix(name: str, format_: TimingFormat | None) -> None:
    assert timing_format_of(name) is format_


def test_json() -> None:
    body = json.loads(written(TimingFormat.JSON))
    assert (body["version"], body["duration_s"], len(body["lines"])) == (1, 4.0, 2)
    first = body["lines"][0]
    assert first["words"][1] == {"word": "you", "start": 8, "end": 11, "start_s": 0.6, "end_s": 0.9}
    assert first["phonemes"][3] == {"phoneme": "ˈoʊ", "start_s": 0.3, "end_s": 0.5}
    assert first["visemes"][0] == {"viseme": "X", "start_s": 0.0, "end_s": 0.1}
    assert body["lines"][1]["visemes"] == [{"viseme": "X", "start_s": 3.0, "end_s": 4.0}]


@pytest.mark.parametrize("name", ["scene.words.json", "The clipboard"])
def test_json_of_word_times_reads_back_as_lines(name: str) -> None:
    read = import_dialog(written(TimingFormat.JSON).encode(), name)
    assert read.dialog == Dialog((Speech("Ann", FIRST.text), Speech('Bo "B"', SECOND.text)))
    assert read.notices == ()


def test_a_text_grid_in_praat_s_own_terms(tmp_path: Path) -> None:
    textgrid = pytest.importorskip("praatio.textgrid")
    path = tmp_path / "scene.TextGrid"
    path.write_text(written(TimingFormat.TEXT_GRID), "utf-8")
    grid = textgrid.openTextgrid(str(path), includeEmptyIntervals=True, reportingMode="error")
    assert grid.tierNames[3:] == ('Bo "B"', 'Bo "B" - words', 'Bo "B" - phones')
    phones = grid.getTier("Ann - phones").entries
    assert [one.label for one in phones if one.label][:4] == ["h", "ə", "l", "ˈoʊ"]
    said = [one for one in grid.getTier("Ann - words").entries if one.label]
    assert tuple(said[0]) == (0.1, 0.5, "Hello")
    assert grid.maxTimestamp == 4.0


def test_intervals_of_a_text_grid_touch_and_none_is_empty() -> None:
    """A word without length, too, which Praat would refuse."""
    lines = written(TimingFormat.TEXT_GRID).splitlines()
    for tier in "\n".join(lines).split("item [")[2:]:
        edges = [
            (float(low.split("=")[1]), float(high.split("=")[1]))
            for low, high in zip(
                [one for one in tier.splitlines() if "            xmin" in one],
                [one for one in tier.splitlines() if "            xmax" in one],
                strict=True,
            )
        ]
        assert edges[0][0] == 0
        assert edges[-1][1] == 4.0
        assert all(low < high for low, high in edges)
        assert all(before[1] == after[0] for before, after in pairwise(edges))
    assert 'text = "Yes"' in "\n".join(lines)
    assert 'name = "Bo ""B"""' in "\n".join(lines)


def test_rhubarb() -> None:
    assert written(TimingFormat.RHUBARB).splitlines() == [
        "0.00\tX", "0.10\tB", "0.20\tC", "0.25\tH", "0.30\tF", "0.50\tX", "0.60\tB", "0.70\tF",
        "0.90\tX", "1.70\tA", "1.80\tB", "2.00\tX", "2.20\tA", "2.30\tD", "2.45\tB", "2.60\tX",
        "4.00\tX",
    ]  # fmt: skip


def test_a_file_for_each_speaker() -> None:
    data = write_timing(LINES, TimingFormat.RHUBARB_BY_SPEAKER, 4.0)
    with zipfile.ZipFile(BytesIO(data)) as archive:
        assert archive.namelist() == ["01-Ann.tsv", "02-Bo__B_.tsv"]
        assert archive.read("02-Bo__B_.tsv").decode() == "0.00\tX\n4.00\tX\n"


@pytest.mark.parametrize(
    ("ipa", "shapes"),
    [
        ("p", "A"), ("ˈæ", "C"), ("ɑː", "D"), ("ɔː", "E"), ("uː", "F"), ("v", "G"), ("l", "H"),
        ("tʃ", "B"), ("ˈaʊ", "DF"), ("ɔɪ", "EB"), ("ʔ", "B"), ("əl", "CH"), ("ç", "B"), ("", ""),
        ("ˈ", ""),
    ],
)  # fmt: skip
def test_mouth_shapes(ipa: str, shapes: str) -> None:
    assert "".join(shapes_of(ipa)) == shapes


def test_a_mouth_stays_as_it_is_through_a_short_gap() -> None:
    said = [PhonemeTime("m", 0.5, 0.6), PhonemeTime("ɑ", 0.65, 0.8)]
    found = [(one.viseme, one.start_s, one.end_s) for one in list_visemes(said, 1.0)]
    assert found == [("X", 0.0, 0.5), ("A", 0.5, 0.65), ("D", 0.65, 0.8), ("X", 0.8, 1.0)]


def test_captions_of_sentences_have_the_time_of_each_word() -> None:
    assert written(TimingFormat.SENTENCES_VTT) == (
        "WEBVTT\n"
        "\n00:00:00.100 --> 00:00:00.900\n<v Ann>Hello,<00:00:00.600> “you”!</v>\n"
        "\n00:00:01.500 --> 00:00:02.000\n<v Ann>It's<00:00:01.700> &amp;me&amp;.</v>\n"
        "\n00:00:02.200 --> 00:00:02.600\n<v Ann>Bye</v>\n"
    )


@pytest.mark.parametrize(
    "format_", [one for one in TimingFormat if one.value.endswith((".vtt", ".srt", "Grid"))]
)
def test_captions_and_tiers_have_no_tags_and_stage_directions(format_: TimingFormat) -> None:
    text = "(whispering) Hello, [pause 1s] you"
    words = (WordTime("Hello", 13, 18, 0.1, 0.5), WordTime("you", 31, 34, 1.6, 1.9))
    data = written(format_, (TimedLine(1, "Ann", text, 0.0, 2.0, words),))
    assert "you" in data
    assert not any(one in data for one in ("whisper", "pause", "(", "[pa"))


def test_captions_of_words() -> None:
    assert written(TimingFormat.WORDS_SRT).split("\n\n")[:2] == [
        "1\n00:00:00,100 --> 00:00:00,500\nHello,",
        "2\n00:00:00,600 --> 00:00:00,900\n“you”!",
    ]
    webvtt = written(TimingFormat.WORDS_VTT).splitlines()
    assert [one for one in webvtt if one.startswith("<v Ann>")] == [
        "<v Ann>Hello,</v>", "<v Ann>“you”!</v>", "<v Ann>It's</v>", "<v Ann>&amp;me&amp;.</v>",
        "<v Ann>Bye</v>",
    ]  # fmt: skip


@pytest.mark.parametrize("format_", list(TimingFormat))
@pytest.mark.parametrize("duration_s", [0.0, 3.0])
def test_a_scene_in_which_nothing_is_said_has_a_file_too(
    format_: TimingFormat, duration_s: float
) -> None:
    data = write_timing((), format_, duration_s)
    assert bool(data) != format_.value.endswith(".srt")


def test_captions_as_another_reader_has_them(tmp_path: Path) -> None:
    path = tmp_path / "scene.vtt"
    path.write_text(written(TimingFormat.SENTENCES_VTT), "utf-8")
    webvtt = pytest.importorskip("webvtt")
    assert [cue.start for cue in webvtt.read(str(path))] == [
        "00:00:00.100", "00:00:01.500", "00:00:02.200",
    ]  # fmt: skip


def test_a_line_without_word_times_is_one_caption() -> None:
    line = TimedLine(1, "Ann", "Nobody knows", 1.0, 2.0)
    assert "00:00:01.000 --> 00:00:02.000\n<v Ann>Nobody knows</v>" in written(
        TimingFormat.SENTENCES_VTT, (line,)
    )
    assert "Nobody" not in written(TimingFormat.WORDS_VTT, (line,))


def test_what_stands_between_sentences_is_kept() -> None:
    line = TimedLine(1, "Ann", "Bye. 🎉 🎉", 0.0, 1.0, (WordTime("Bye", 0, 3, 0.1, 0.5),))
    assert "<v Ann>Bye. 🎉 🎉</v>" in written(TimingFormat.SENTENCES_VTT, (line,))


def test_a_long_sentence_is_divided() -> None:
    text = "and so " * 30 + "on."
    words = tuple(
        WordTime(text[at : at + 3].strip(), at, at + 3, at / 10, at / 10 + 0.2)
        for at in range(0, len(text) - 3, 7)
    )
    line = TimedLine(1, "Ann", text, 0.0, 30.0, words)
    cues = [
        one.split("\n", 1)[1] for one in written(TimingFormat.SENTENCES_SRT, (line,)).split("\n\n")
    ]
    texts = [one.split("\n")[1] for one in cues]
    assert len(texts) == 3
    assert max(map(len, texts)) <= 84
