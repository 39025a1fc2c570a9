"""Imports Gradio without the work that a start doesn't need.

For every class of a component Gradio writes a `.pyi` file beside its sources, for editors. For that
it parses the source and the file and compiles a template, each time it is imported, which took a
third of a start. It imports pandas for a function that the studio doesn't use: that waits until
somebody does. And where the package mcp is installed it imports that for a server that the studio
has of its own: here it finds none. No setting turns any of these off.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

_MODULE = "gradio.component_meta"
_WRITER = "create_or_modify_pyi"
_UNUSED = "pandas"
_OPTIONAL = "mcp"


@contextmanager
def quick_gradio_import() -> Iterator[None]:
    """Have Gradio, if it is first imported in the block, load neither pandas nor mcp.

    It writes no stub files, either. A Gradio without that function is imported as it is.
    """
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _OPTIONAL:
            raise ModuleNotFoundError("Gradio is imported without it.", name=fullname)
        if fullname not in (_MODULE, _UNUSED):
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is None or type(found.loader) is not SourceFileLoader:
            return None
        if fullname == _UNUSED:
            found.loader = _LaterLoader(fullname, found.loader.path)
        else:
            found.loader = _Loader(fullname, found.loader.path)
        return found


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if hasattr(module, _WRITER):
            setattr(module, _WRITER, _write_nothing)


class _LaterLoader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _Later

    def exec_now(self, module: ModuleType) -> None:
        super().exec_module(module)


class _Later(ModuleType):
    """Runs its module when something in it is first asked for, in one thread.

    `importlib.util.LazyLoader` lets others see the module half made until Python 3.12.
    """

    def __getattr__(self, name: str) -> object:
        with _one_at_a_time:
            loader, begun = self.__loader__, self.__dict__.setdefault("_begun", [])
            if isinstance(loader, _LaterLoader) and not begun:
                begun.append(True)
                loader.exec_now(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
            return ModuleType.__getattribute__(self, name)


_one_at_a_time = threading.RLock()  # the module asks for parts of itself while it is run


def _write_nothing(*_: object) -> None:
    pass
