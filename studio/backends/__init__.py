"""The speech backends; the only package that may import torch."""
