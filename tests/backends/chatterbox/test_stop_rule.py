"""The studio's own rule ends no line of the multilingual model before its text is spoken."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the neural voices' packages are not installed")

import torch
from attention_walk import Walk

from studio.backends.chatterbox.alignment import (
    AlignmentStep,
    MonitorColumn,
    StopDecision,
    StopRule,
    init_monitor,
    is_premature_stop,
    update_monitor,
)

pytestmark = pytest.mark.models


class Line:
    """A line of one row whose heads look where they are told."""

    def __init__(self, text_tokens: int, ends: StopRule = StopRule.SPOKEN) -> None:
        self.watch, self.ends = torch.tensor([init_monitor(2, text_tokens)]), ends
        self.text_tokens, self.frame = text_tokens, 0

    def look(self, place: int, *, times: int = 1, twice: bool = False) -> Line:
        """Read as many tokens, each with all attention on one token of the text."""
        for _ in range(times):
            self.frame += 1
            attention = torch.zeros(1, self.text_tokens + 4)
            attention[0, 2 + place] = 1
            seen = AlignmentStep(attention, torch.tensor([self.frame]), torch.tensor([twice]))
            self.watch = update_monitor(self.watch, seen, self.ends)
        return self

    def read(self, upto: int, *, pace: int = 2) -> Line:
        """Go through the text, so many steps a token."""
        for place in range(upto):
            self.look(place, times=pace)
        return self

    @property
    def ruling(self) -> StopDecision:
        return StopDecision(int(self.watch[0, MonitorColumn.RULING]))


def test_a_token_said_twice_in_mid_sentence_ends_nothing():
    line = Line(20).read(5).look(5, times=30, twice=True)
    assert line.ruling is StopDecision.FORBIDDEN
    package = Line(20, StopRule.PACKAGE).read(5).look(5, twice=True)
    assert package.ruling is StopDecision.FORCED
    assert is_premature_stop(package.watch).tolist() == [True]


def test_the_last_word_is_spoken_out():
    """The package forces an end 200 ms after the last sound came up."""
    last = 17  # of 20: before the stop and the mark of the text's end
    assert Line(20, StopRule.PACKAGE).read(last).look(last, times=6).ruling is StopDecision.FORCED
    assert Line(20).read(last).look(last, times=20).ruling is StopDecision.OPEN


def test_what_follows_the_last_word_has_half_a_second():
    line = Line(20).read(18).look(18, times=12)
    assert line.ruling is StopDecision.OPEN
    assert line.look(18).ruling is StopDecision.FORCED
    assert is_premature_stop(line.watch).tolist() == [False]


def test_a_line_that_says_its_text_again_is_ended():
    line = Line(20).read(20).look(2, times=5)
    assert line.ruling is StopDecision.OPEN
    assert line.look(3, times=2).ruling is StopDecision.FORCED


def test_a_glance_at_the_texts_end_ends_nothing():
    """After as many tokens as the text has, heads that look ahead could seem to be done."""
    glance = (12, 17)  # no farther at once than the place may move
    package, line = (
        Line(20, ends).read(10, pace=3) for ends in (StopRule.PACKAGE, StopRule.SPOKEN)
    )
    for one in (package, line):
        for place in glance:
            one.look(place)
        one.look(10, times=8)
    assert package.ruling is StopDecision.FORCED
    assert line.ruling is StopDecision.OPEN


def test_no_end_is_forced_before_the_text_was_spoken_whatever_is_seen():
    walks, forced = [Walk(number) for number in range(24)], 0
    longest = max(walk.text_at + walk.text_tokens for walk in walks) + 2
    watch = torch.tensor([init_monitor(walk.text_at, walk.text_tokens) for walk in walks])
    for frame in range(1, 200):
        attention = torch.stack([walk.attention(longest + frame) for walk in walks])
        seen = AlignmentStep(attention, torch.full((24,), frame), torch.rand(24) < 0.3)
        watch = update_monitor(watch, seen, StopRule.SPOKEN)
        forced += int((watch[:, MonitorColumn.RULING] == StopDecision.FORCED).sum())
        assert not is_premature_stop(watch).any()
    assert forced > 100
