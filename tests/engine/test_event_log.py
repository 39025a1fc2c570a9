import asyncio
import threading

from studio.engine.event_log import EventLog


def test_a_reader_gets_what_was_there_and_what_comes() -> None:
    log: EventLog[int] = EventLog()
    log.append(1)
    heard: list[int] = []
    reader = threading.Thread(target=lambda: heard.extend(log.follow()))
    reader.start()
    for item in (2, 3):
        log.append(item)
    log.close()
    reader.join(timeout=60)
    assert heard == [1, 2, 3]


def test_a_late_reader_gets_everything_from_its_start() -> None:
    log: EventLog[int] = EventLog()
    for item in range(5):
        log.append(item)
    log.close()
    assert list(log.follow(3)) == [3, 4]
    assert log.read(1) == [1, 2, 3, 4]
    assert log.seq == 5


async def test_readers_on_a_loop_follow_a_writer_in_a_thread() -> None:
    log: EventLog[int] = EventLog()

    async def collect(start: int) -> list[int]:
        return [item async for item in log.subscribe(start)]

    readers = [asyncio.ensure_future(collect(start)) for start in (0, 0, 900)]
    await asyncio.sleep(0)

    def write() -> None:
        for item in range(1000):
            log.append(item)
        log.close()

    await asyncio.to_thread(write)
    assert await asyncio.gather(*readers) == [
        list(range(1000)),
        list(range(1000)),
        list(range(900, 1000)),
    ]


async def test_a_reader_that_leaves_early_is_forgotten() -> None:
    log: EventLog[int] = EventLog()
    log.append(1)
    reader = log.subscribe()
    assert await anext(reader) == 1
    await reader.aclose()
    log.append(2)
    assert log.subscriber_count == 0


async def test_a_bounded_log_ends_for_who_lags_or_comes_from_another_run() -> None:
    log: EventLog[str] = EventLog(max_items=2, first_seq=100)
    for item in "abc":
        log.append(item)
    assert (log.seq, log.read(100), log.read(102)) == (103, ["b", "c"], ["c"])
    assert log.read_batch(101) == [(102, "b"), (103, "c")]
    assert log.read_batch(103) == []
    for lost in (100, 104, 5):
        assert log.read_batch(lost) is None
        assert [item async for item in log.subscribe(lost)] == []
        assert list(log.follow(lost)) == []


async def test_a_closed_log_gives_what_is_left_and_takes_no_more() -> None:
    log: EventLog[int] = EventLog()
    log.append(1)
    log.close()
    log.append(2)
    assert [item async for item in log.subscribe()] == [1]
    assert log.read_batch(1) is None
    assert not log.withdrawn
    log.close(withdrawn=True)
    assert log.withdrawn


async def test_a_change_is_waited_for_and_so_is_the_end() -> None:
    log: EventLog[int] = EventLog(max_items=1)
    await asyncio.to_thread(log.append, 1)
    await log.wait_for_change(0)
    waiting = asyncio.ensure_future(log.wait_for_change(1))
    await asyncio.sleep(0)
    assert log.subscriber_count == 1
    await asyncio.to_thread(log.append, 2)
    await asyncio.wait_for(waiting, 60)
    waiting = asyncio.ensure_future(log.wait_for_change(2))
    await asyncio.sleep(0)
    await asyncio.to_thread(log.close)
    await asyncio.wait_for(waiting, 60)
    assert log.subscriber_count == 0
