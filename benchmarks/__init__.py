"""Benchmarks of the studio and of its engines: `python launch.py bench`."""
