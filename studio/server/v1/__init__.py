"""The speech API that other programs know: OpenAI's shape, and vLLM-Omni's additions."""
