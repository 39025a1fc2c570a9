"""Every registered backend keeps the contract."""

import pytest
from contract import CHECKS

from studio.backends.registry import BACKENDS, create, offer_of
from studio.errors import SettingError


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    backend = create(request.param)
    offer = offer_of(backend)
    if not offer.ready:
        pytest.skip(offer.unavailable or offer.to_fetch)
    backend.load(lambda _progress: None)
    yield backend
    backend.unload()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check, backend):
    check(backend)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_goes_by_its_registered_name(name):
    assert create(name).name == name


def test_an_unknown_backend_is_refused_with_those_there_are():
    with pytest.raises(SettingError, match=r"no backend “mystery”.*draft"):
        create("mystery")
