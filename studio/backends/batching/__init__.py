"""Continuous batching of speech models: engine loop, scheduler, slots, kernels; knows no model."""
