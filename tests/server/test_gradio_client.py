"""What Gradio's own client may call, and what it may not."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator

import pytest
import soundfile
from gradio_client import Client
from gradio_client.exceptions import AppError
from serving import serving


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[Client]:
    workspace = tmp_path_factory.mktemp("gradio") / "workspace"
    with serving(workspace) as (http, _):
        client = Client(str(http.base_url), verbose=False)
        yield client
        client.close()


def test_it_speaks(client: Client) -> None:
    spoken = client.predict("Good evening.", "Ida", 7, api_name="/speak")
    head, _, data = spoken.partition(",")
    assert head == "data:audio/wav;base64"
    samples, rate_hz = soundfile.read(io.BytesIO(base64.b64decode(data)))
    assert len(samples) / rate_hz > 0.3
    assert client.predict("Good evening.", "Ida", 7, api_name="/speak") == spoken


def test_a_refusal_has_its_words(client: Client) -> None:
    with pytest.raises(AppError, match="nothing to speak"):
        client.predict("…", "Ida", None, api_name="/speak")


def test_nothing_else_is_offered(client: Client) -> None:
    offered = client.view_api(return_format="dict", print_info=False)
    assert set(offered["named_endpoints"]) == {"/speak"}
    assert offered["unnamed_endpoints"] == {}
