"""The studio without the packages of the large voices, which it installs from the tests' own index.

What is installed is one small package; once it is there, those that the voices need are found. It
is built when a file `go` lies in `tiny/tiny_voices-signals`, beside the workspace. Run as
`python installing_server.py WORKSPACE PORT`.
"""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "setup"))
from tiny_index import TinyRepo

from studio.app import main
from studio.setup.installer import Home, Installer
from studio.setup.models_install import ModelsInstall
from studio.setup.requirements import read_parts

workspace, port = Path(sys.argv[1]), sys.argv[2]
repo = TinyRepo.make(workspace.parent / "tiny")
repo.add_slow("tiny_voices")
repo.require("", "# download: 3 MB\n# no-deps: tiny_voices==1.0")
site = repo.root / "site"
# The running environment is everybody's: nothing may be installed into it.
os.environ.update(repo.environ(PIP_TARGET=str(site)))
sys.path.insert(0, str(site))


class Finder(PathFinder):
    """Finds no torch before the package is installed."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        is_hidden = fullname == "torch" and not (site / "tiny_voices").exists()
        return None if is_hidden else super().find_spec(fullname, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Finder

home = Home(repo.root, repo.root / "state", owned=False, locks=repo.locks)
part = read_parts(repo.root / "requirements.txt")["models"]
setup = ModelsInstall(lambda: Installer(home, part), allowed=False)
sys.exit(
    main(
        [
            *("serve", "--port", port, "--no-browser", "--backend", "draft"),
            *("--workspace", str(workspace)),
        ],
        setup,
    )
)
