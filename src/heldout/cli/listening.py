"""Can a server listen there? Asked before anything is loaded or said."""

import errno
import socket

from heldout.errors import SetupError

__all__ = ["check_port"]


def check_port(host: str, port: int) -> None:
    """Try to listen.

    Args:
        host: name or address of this machine.
        port: there.

    Raises:
        SetupError: another program listens there, or nobody can.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            text = f"port {port} of {host} is in use; choose another with --port, as {port + 1}"
            raise SetupError(text) from None
        raise SetupError(f"cannot listen at {host}, port {port}: {error.strerror}") from None
