"""The studio on a disk without room for takes while a file `full` is in the workspace.

Run as `python full_disk_server.py WORKSPACE PORT`, with the repository on the path.
"""

import errno
import sys
from pathlib import Path

from studio.app import main
from studio.storage.disk import Disk

WORKSPACE, PORT = Path(sys.argv[1]), sys.argv[2]
rename = Disk._rename


def refuse_takes(self, source, target):
    if target.suffix == ".wav" and (WORKSPACE / "full").exists():
        raise OSError(errno.ENOSPC, "No space left on device")
    rename(self, source, target)


if __name__ == "__main__":
    Disk._rename = refuse_takes
    sys.exit(
        main(
            [
                *("serve", "--port", PORT, "--no-browser", "--backend", "draft"),
                *("--workspace", str(WORKSPACE)),
            ]
        )
    )
