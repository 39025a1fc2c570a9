"""The log as JSON, an object a line."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

REQUESTS = "studio.server.middleware.access_log"
"""Name of the logger of the server's requests."""


class JsonFormatter(logging.Formatter):
    """Formats each record, those of other packages too, as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """A record's time, level, logger and message, and the fields that it brings."""
        body = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            body["traceback"] = self.formatException(record.exc_info)
        return json.dumps(body)
