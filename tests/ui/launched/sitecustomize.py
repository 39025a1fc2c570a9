"""Run by the Python of a studio that a test launches: the tests' hub has small files of its own.

The catalogues' checksums are of the real ones, so they state nothing there.
"""

from contextlib import suppress

with suppress(ImportError):  # while there are no packages yet
    from studio.backends.base import WeightSource

    WeightSource.stated = property(lambda _: {})
