"""Forms that come slowly, and addresses whose tries are counted together."""

import socket
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from judging_stage import Stages

from heldout.web import forms
from heldout.web.forms import network, network_of


def take_form(fields: forms.Form) -> PlainTextResponse:
    return PlainTextResponse(str(len(fields)))


def test_a_form_that_comes_in_drips_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(forms, "_BODY_SECONDS", 0.3)
    app = FastAPI()
    app.add_api_route("/form", take_form, methods=["POST"])
    head = b"POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    with Stages(tmp_path) as stages:
        found = httpx2.URL(stages.serve(app))
        address = found.host, found.port or 0
        with socket.create_connection(address) as line:
            line.sendall(head + b"token=")
            line.settimeout(10)
            assert line.recv(100).startswith(b"HTTP/1.1 408")
        with socket.create_connection(address) as line:
            line.sendall(head)
        assert httpx2.post(f"{found}/form", data={"a": "b"}, trust_env=False).text == "1"
    assert not caplog.records  # a connection that breaks is no bug of ours


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7/32"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:2", "2001:db8::/64"),
        ("testclient", "testclient"),
        ("127.0.0.9", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
    ],
)
def test_an_address_is_counted_as_one_machine_or_one_network(host: str, counted: str) -> None:
    """IPv4 that comes as IPv6 is no common network: one sender would use up everybody's slots."""
    assert network_of(Request({"type": "http", "client": (host, 1)})) == counted
    assert not counted or network(host) == counted
