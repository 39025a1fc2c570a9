"""Rows stand in groups, and order, focus, drops and heights are as without them."""

import random

import pytest
from ui_steps import by_tom, line_ids, saved

from benchmarks.page_timing import scene

pytestmark = pytest.mark.browser

LINES = 120
GROUPS = """() => [...document.getElementById('lines').children].map(
  (group) => [...group.children].map((row) => row.dataset.line))"""
IN_ORDER = """wanted => wanted === [...document.querySelectorAll('#lines .line')]
  .map((row) => row.dataset.line).join()"""
FAR = "() => document.querySelector('.line-group:last-child').matches('.far')"
ACTS = {
    "add": "commands.add()",
    "delete": "commands.delete()",
    "up": "commands.shift(-1)",
    "down": "commands.shift(1)",
    "far": "commands.move([order[from]], order[to])",
    "many": "commands.delete(order.slice(from, to))",
    "undo": "await commands.travel('undo')",
}


def act(page, name, start, end):
    page.evaluate(
        f"""async ([from, to]) => {{
          const {{ commands, selection, project }} = window.tableread;
          const {{ order }} = project.view;
          selection.go(order[from]);
          {ACTS[name]};
        }}""",
        [start, end],
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_rows_are_in_order_whatever_is_done_to_them(page, write, seed):
    write(scene(LINES), LINES)
    chance = random.Random(seed)
    for _ in range(40):
        lines = len(line_ids(page))
        start = chance.choice([24, 25, 49, 50, chance.randrange(lines - 1)]) % (lines - 1)
        name = chance.choice(list(ACTS))
        most = min(lines, start + 30) if name == "many" else lines
        act(page, name, start, chance.randrange(start + 1, most) if start + 1 < most else start)
        groups = page.evaluate(GROUPS)
        assert [line for group in groups for line in group] == line_ids(page), name
        assert all(groups), name
    saved(page)


def insert_of(after, first, lines):
    ids = [f"{first + n:012x}" for n in range(lines)]
    made = [{"line_id": one, "speaker": "Mara", "text": f"New {one}."} for one in ids]
    return ids, {"op": "insert", "after": after, "lines": made}


@pytest.mark.parametrize("at", [None, 4, 24, 40])
def test_many_rows_among_others_stand_in_groups_of_their_own(page, write, at):
    project = write(scene(LINES), LINES)
    order = line_ids(page)
    page.locator("#lines .line-text").nth(27).click()  # in the second group
    page.keyboard.press("End")
    for first in (1, 1_001):
        after = None if at is None else order[at]
        ids, op = insert_of(after, first, 130)
        by_tom(page, project, op)
        start = 0 if after is None else order.index(after) + 1
        order[start:start] = ids
        page.wait_for_function(IN_ORDER, arg=",".join(order))
    groups = page.evaluate(GROUPS)
    assert [line for group in groups for line in group] == order
    assert max(map(len, groups)) <= 50
    page.keyboard.type(" Still here.")
    assert page.evaluate("() => document.activeElement.textContent").endswith(" Still here.")


def test_a_row_that_is_written_keeps_the_keyboard_while_others_come_and_go(page, write):
    project = write(scene(LINES), LINES)
    lines = line_ids(page)
    page.locator("#lines .line-text").nth(25).click()
    by_tom(page, project, {"op": "delete", "line_ids": [lines[24]]})
    by_tom(page, project, {"op": "move", "line_ids": [lines[26]], "after": lines[3]})
    wanted = [*lines[:4], lines[26], *lines[4:24], lines[25], *lines[27:]]
    page.wait_for_function(IN_ORDER, arg=",".join(wanted))
    page.keyboard.press("End")
    page.keyboard.type(" Still here.")
    assert page.evaluate("() => document.activeElement.textContent").endswith(" Still here.")
    assert page.locator("#lines .line-text").nth(25).inner_text().endswith(" Still here.")


def test_a_row_is_dropped_between_two_groups(page, write):
    write(scene(LINES), LINES)
    before = line_ids(page)
    assert page.evaluate(GROUPS)[1][0] == before[25]
    rows = page.locator("#lines .line")
    rows.nth(22).scroll_into_view_if_needed()
    rows.nth(25).scroll_into_view_if_needed()
    grip = rows.nth(22).locator(".line-grip")
    grip.drag_to(rows.nth(25), target_position={"x": 300, "y": 4})
    wanted = [*before[:22], *before[23:25], before[22], *before[25:]]
    page.wait_for_function(IN_ORDER, arg=",".join(wanted))


def test_what_a_filter_hides_takes_no_room_out_of_sight(page, write):
    write(scene(300), 300)
    page.wait_for_function(FAR)
    whole = page.evaluate("() => document.getElementById('lines').scrollHeight")
    assert whole > 300 * 40
    page.wait_for_selector("#filter-speakers option >> nth=1", state="attached")
    page.select_option("#filter", "speaker:mara")
    page.wait_for_function(
        "whole => document.getElementById('lines').scrollHeight < whole / 2", arg=whole
    )
    page.click("#filter-clear")
    page.wait_for_function(
        "whole => document.getElementById('lines').scrollHeight > 0.9 * whole", arg=whole
    )
