"""Run by the Python of a studio that a test launches: the tests' hub has small files of its own.

The catalogues' checksums are of the real ones, so they state nothing there, and no other place.
"""

import os
from contextlib import suppress

with suppress(ImportError):  # while there are no packages yet
    from studio.backends.base import WeightSource

    if "TESTS_REAL_WEIGHTS" not in os.environ:
        WeightSource.stated = property(lambda _: {})
        WeightSource.has_places = property(lambda _: False)
