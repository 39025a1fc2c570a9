"""What is left when the tests of the server have ended."""

from serving import end_forks


def pytest_unconfigure():
    end_forks()
