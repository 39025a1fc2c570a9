"""No reader takes more than linear time, whatever sign is repeated after whatever beginning.

The short form reads each sign after one beginning, the campaign each after all of them, and
2,000 mixtures of signs by a seed that it prints.
"""

from __future__ import annotations

import contextlib
import os
import random
import time

import pytest
from growth import assert_linear

from studio.dialog.formats.dialog_file import import_dialog
from studio.errors import BadInput

pytestmark = pytest.mark.slow

_SMALL, _LARGE = 6_000, 48_000
# Linear work takes 8 times as long on the larger text, quadratic work 64 times.
_SUSPICIOUS = 18.0
_LEAST_S = 0.005
_MIXTURES = 2_000

SIGNS = [
    "[[", "<<", "{{", "((", "[", "(", "{", "<", "*", "_", "**", "__", "`", "```", '"', "“", "«",
    "'", "|", "->", "<-", "::", "==", "--", "//", "/*", "<!--", "%", "$", "@", "#", "~", "^", "\\",
    "&", "&#", "&a", "<a ", "</", "{%", "${", "[a", "(a", "{a ", "[[a|", "[a](", "![", '"a ', 'a"',
    "- ", "* ", "> ", ">> ", "a ", "A ", ". ", "...", ", ", ": ", "a:", "1", "0:", "0", "1.", "<v ",
    "<b>", "*a", "_a", "“a", "”", "’", "é", "a-\n", "a\n", "A\n", "A:\n", "\n ", "\n\n", "\t", "  ",
    "\xa0", "\u3000", "(a)\n", "[a]\n", "<a>", "[a] ", "(a) ", "{a}", "*a* ", "{*", "*[", "a=",
    'a="', "\r", "\u2028", "=a", "~ ", "-> ", "* [", "+ ", "- -", "(CONT'D) ", "(v.o.) ", "[pause",
    "<break ", "(pause ", "[pause:", "00:00 ", "00:00:00,000 --> ", "http://", "a@", "#a ", "@a ",
    "^ ", "\n>", "\n-", "\n*", "\n#", '\n"', "\n(", "\n[", "\n{", "\n<", "\n|", "\n:", "\n::",
    "\n=", "\n->", "A. ", "A.\n", "Mr. ", "I. ", "<!---->", "<!-- -->", '<a b="> " ',
    '<p speaker="', "[00:01.00]", "\n- ", "\n  text: ", "    ", "{\\p1", "\\N", "|im_start|>", "<|",
    "[INST] ", "[/INST]", "<think>", " & ", "“,” ", "“a,” said B. ", "Mr", "1:", "\n1. ", "\n1) ",
    "(0:01) ", "=>", "&lt;", '\\"', "\\\\", "#{", "- a: b\n", "\n\n> ", "***", "_*", "\n---\n",
    "\n===\n", "\n```\n", "~~~", "\n\t", "(a) - ", "[a: ", "<a/>", "A (b): ", "A - ", "A — ", "「",
    "」", "『a』", "（a", "）", "：", "・", "…", "\u200b", "́", "á", "🎉", "ا ", "你",
]  # fmt: skip

BEGINNINGS = {
    "": "a.txt",
    "Ida: ": "a.txt",
    ":: P\n": "a.twee",
    ":: P [a]\n[[a]] ": "a.twee",
    "=== k ===\n* [x] y\n": "a.ink",
    "=== k ===\n* x\n{": "a.ink",
    "title: A\n---\nIda: x\n": "a.yarn",
    "title: A\n---\n-> ": "a.yarn",
    'label a:\n    e "x"\n    e "': "a.rpy",
    'label a:\n    e "x"\n': "a.rpy",
    "WEBVTT\n\n00:00.000 --> 00:01.000\n": "a.vtt",
    "1\n00:00:00,000 --> 00:00:01,000\n": "a.srt",
    "INT. A\n\nIDA\n": "a.fountain",
    "Title: x\n\nINT. A\n\nIDA\n(": "a.fountain",
    "[Ida | ": "a.txt",
    "[Script Info]\n[Events]\nFormat: Start, End, Text\nDialogue: 0:00:00.00,0:00:01.00,": "a.ass",
    "speaker,text\nIda,": "a.csv",
    "| speaker | text |\n|---|---|\n| Ida | ": "a.md",
    "# T\n\n**Ida:** x\n\n**Tom:** ": "a.md",
    "> **Ida:** ": "a.md",
    "1. Ida: x\n2. Tom: ": "a.txt",
    "HAMLET. x\n\nOPHELIA. ": "a.txt",
    "ACT I\n\nSCENE 1\n\nHAMLET\nx\n\nOPHELIA\n": "a.txt",
    "[12.12.2020, 12:12:12] A: x\n[12.12.2020, 12:12:13] B: ": "a.txt",
    "<p><b>Ida:</b> ": "a.html",
    "Sure! Here it is:\n\n**Ida:** x\n\n": "a.txt",
    '[{"speaker":"a","text":"': "a.json",
    "“x,” said Ida. “": "a.txt",
    "[S1] x [S2] ": "a.txt",
    "---\na: b\n---\n": "a.md",
    '<speak><voice name="a">': "a.xml",
    "<speak>": "a.txt",
    "IDA\n(x)\ny\n\nTOM\n": "a.txt",
    "Ida (0:01): x\nTom (0:02): ": "a.txt",
    "[00:01.00]Ida: ": "a.lrc",
    "<think>": "a.txt",
    "[INST] ": "a.txt",
    "<|im_start|>user\n": "a.txt",
    "- speaker: Ida\n  text: x\n- speaker: Tom\n  text: ": "a.txt",
    "IDA        x\nTOM        ": "a.txt",
    "[00:00.000 --> 00:01.000] Ida: ": "a.txt",
    "0:00:01.000,0:00:02.000\nIda: ": "a.sbv",
    '{"type":"speech","speaker_id":"a","text":"': "a.jsonl",
    "```\nIda: x\n": "a.md",
    "Ida \u300cx\u300d\nTom\u300c": "a.txt",
    "Ida - x\nTom - ": "a.txt",
    "Scene 1\n\nIda: (x) y\nTom: (": "a.txt",
    'label a:\n    e "x" with ': "a.rpy",
    'define e = Character("': "a.rpy",
    'label a:\n    "Ida" "x"\n    e ': "a.rpy",
    "=== k ===\n-> k\nx ": "a.ink",
    "=== k ===\n-> k\n- (": "a.ink",
    ':: P {"a":1}\n(a: ': "a.twee",
    "Title: x\nAuthor: ": "a.fountain",
    'label a:\n    e """': "a.rpy",
    "translate de a_1:\n    e '": "a.rpy",
    "=== k ===\n-> k\n{x:\n- ": "a.ink",
    "title: A\n---\n=> Ida: x #line:1 ": "a.yarn",
    '{"results":{"items":[{"type":"pronunciation","alternatives":[{"content":"': "a.json",
    '[["Ida","x"],["Tom","': "a.json",
    "[Ida] x [Tom] y\n[Ida] x [": "a.txt",
    "1\tIda\tx\n2\tTom\ty\n3\tIda\t": "a.tsv",
    "speaker,start,end,text\nIda,0:01,0:02,": "a.csv",
    "Ida: 汽車《きしゃ》": "a.txt",
    "[Script Info]\nTitle: ": "a.ass",
    "1. **Ida:** x\n2. **Tom:** (": "a.md",
}
"""What makes a text that of each reader, with the file's name."""


def read(before: str, piece: str, size: int) -> None:
    text = before + piece * (size // len(piece))
    with contextlib.suppress(BadInput):
        import_dialog(text.encode(), BEGINNINGS[before])


def spent_s(before: str, piece: str, size: int) -> float:
    start_s = time.thread_time()
    read(before, piece, size)
    return time.thread_time() - start_s


def check_growth(before: str, piece: str) -> None:
    small_s = max(_LEAST_S, spent_s(before, piece, _SMALL))
    if spent_s(before, piece, _LARGE) > _SUSPICIOUS * small_s:
        assert_linear(lambda size: read(before, piece, size), _LARGE)


@pytest.mark.parametrize("before", BEGINNINGS)
def test_a_sign_again_and_again_takes_linear_time(before: str) -> None:
    number = list(BEGINNINGS).index(before)
    for piece in SIGNS[number :: len(BEGINNINGS)]:
        check_growth(before, piece)


@pytest.mark.campaign
@pytest.mark.parametrize("before", BEGINNINGS)
def test_each_sign_takes_linear_time_after_each_beginning(before: str) -> None:
    slow = {}
    for piece in SIGNS:
        try:
            check_growth(before, piece)
        except AssertionError as error:
            slow[piece] = str(error)
    assert not slow


@pytest.mark.campaign
def test_mixtures_of_signs_take_linear_time() -> None:
    seed = os.environ.get("GROWTH_SEED") or random.randrange(2**32)
    print(f"GROWTH_SEED={seed}")
    chance, slow = random.Random(int(seed)), {}
    for _ in range(_MIXTURES):
        before = chance.choice(list(BEGINNINGS))
        piece = "".join(chance.choices(SIGNS, k=chance.randint(2, 4)))
        try:
            check_growth(before, piece)
        except AssertionError as error:
            slow[before, piece] = str(error)
    assert not slow
