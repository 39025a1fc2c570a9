"""A studio that several people share: sessions, quotas, and the engine as each sees it."""
