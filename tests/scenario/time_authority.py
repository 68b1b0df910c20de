"""A time stamp authority of one test: `openssl ts`, with a root and an intermediate certificate."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

_SETTINGS = """\
[req]
distinguished_name = name
[name]
[root]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[stamps]
basicConstraints = CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[tsa]
default_tsa = here
[here]
dir = .
serial = ./serial
signer_cert = ./tsa.pem
signer_key = ./tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
accuracy = secs:1
ordering = yes
tsa_name = no
ess_cert_id_chain = no
ess_cert_id_alg = sha256
"""


@dataclass(frozen=True, slots=True)
class Authority:
    """The authority, by its folder."""

    folder: Path

    @property
    def root(self) -> Path:
        """Its root certificate."""
        return self.folder / "root.pem"

    def answer(self, request: bytes) -> bytes:
        """The response to a request."""
        (self.folder / "asked.tsq").write_bytes(request)
        self.run("ts", "-reply", "-queryfile", "asked.tsq", "-out", "told.tsr")
        return (self.folder / "told.tsr").read_bytes()

    def run(self, *arguments: str) -> None:
        """Call openssl in the folder."""
        said = ["openssl", *arguments]
        said += ["-config", "settings.cnf"] if arguments[0] in ("ts", "req") else []
        done = subprocess.run(said, cwd=self.folder, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The address at which it answers, on this machine alone."""
        authority = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.headers["Content-Type"] == "application/timestamp-query"
                found = authority.answer(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", str(len(found)))
                self.end_headers()
                self.wfile.write(found)

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/tsr"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def make_authority(folder: Path) -> Authority:
    """A new one, with keys of its own."""
    folder.mkdir()
    (folder / "settings.cnf").write_text(_SETTINGS)
    (folder / "serial").write_text("01\n")
    authority = Authority(folder)
    for name, subject in (("root", "/CN=A root"), ("tsa", "/CN=An authority")):
        authority.run(
            *("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key"),
            *("-subj", subject, "-out", f"{name}.csr"),
        )
    signing = ("-extfile", "settings.cnf", "-days", "3650")
    authority.run(
        *("x509", "-req", "-in", "root.csr", "-signkey", "root.key", "-out", "root.pem"),
        *(*signing, "-extensions", "root"),
    )
    authority.run(
        *("x509", "-req", "-in", "tsa.csr", "-CA", "root.pem", "-CAkey", "root.key"),
        *("-set_serial", "2", "-out", "tsa.pem", *signing, "-extensions", "stamps"),
    )
    return authority
