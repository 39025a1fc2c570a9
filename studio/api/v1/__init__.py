"""The speech API that other programs know: OpenAI's shape, and what vLLM-Omni adds to it."""
