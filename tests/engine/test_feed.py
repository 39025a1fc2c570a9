import asyncio
import threading

from studio.engine.feed import Feed


def test_a_reader_gets_what_was_there_and_what_comes() -> None:
    feed: Feed[int] = Feed()
    feed.append(1)
    heard: list[int] = []
    reader = threading.Thread(target=lambda: heard.extend(feed.follow()))
    reader.start()
    for item in (2, 3):
        feed.append(item)
    feed.close()
    reader.join(timeout=60)
    assert heard == [1, 2, 3]


def test_a_late_reader_gets_everything_from_its_start() -> None:
    feed: Feed[int] = Feed()
    for item in range(5):
        feed.append(item)
    feed.close()
    assert list(feed.follow(3)) == [3, 4]
    assert feed.read(1) == [1, 2, 3, 4]
    assert len(feed) == 5


async def test_readers_on_a_loop_follow_a_writer_in_a_thread() -> None:
    feed: Feed[int] = Feed()

    async def collect(start: int) -> list[int]:
        return [item async for item in feed.afollow(start)]

    readers = [asyncio.ensure_future(collect(start)) for start in (0, 0, 900)]
    await asyncio.sleep(0)

    def write() -> None:
        for item in range(1000):
            feed.append(item)
        feed.close()

    await asyncio.to_thread(write)
    assert await asyncio.gather(*readers) == [
        list(range(1000)),
        list(range(1000)),
        list(range(900, 1000)),
    ]


async def test_a_reader_that_leaves_early_is_forgotten() -> None:
    feed: Feed[int] = Feed()
    feed.append(1)
    reader = feed.afollow()
    assert await anext(reader) == 1
    await reader.aclose()
    feed.append(2)
    assert not feed._wakers
