"""The remote backend: speech from any server with OpenAI's speech API."""
