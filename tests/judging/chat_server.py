"""An OpenAI-compatible endpoint on this machine that behaves as badly as a test asks for."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def completion(text: str | None, **changes: Any) -> dict[str, Any]:
    """A chat completion with one choice; `changes` are of the choice."""
    return {
        "id": "c-1",
        "object": "chat.completion",
        "model": "served-model",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
                **changes,
            }
        ],
        "usage": {"prompt_tokens": 90, "completion_tokens": 1, "total_tokens": 91},
    }


@dataclass
class Answer:
    """What the server sends."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None  # say so many bytes more than are sent, then close
    hang: float = 0.0  # seconds before it answers
    drip: float = 0.0  # seconds between bytes
    slam: bool = False  # close without a word


def say(text: str | None, **changes: Any) -> Answer:
    """A proper answer."""
    return Answer(json.dumps(completion(text, **changes)).encode())


@dataclass
class ChatServer:
    """What it answers, and what it was asked."""

    answer: Callable[[dict[str, Any], int], Answer]
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def texts(self) -> list[dict[str, str]]:
        """Question and passages of each call."""
        return [json.loads(one["messages"][1]["content"]) for one in self.asked]

    def take(self, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        with self.lock:
            self.asked.append(body)
            self.headers.append(headers)
            number = len(self.asked)
        return self.answer(body, number)


@contextmanager
def chat_server(answer: Callable[[dict[str, Any], int], Answer]) -> Iterator[ChatServer]:
    """A server whose answer to each call, counted from 1, is what `answer` says."""
    chat = ChatServer(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            with chat.lock:
                chat.at_once += 1
                chat.most_at_once = max(chat.most_at_once, chat.at_once)
            try:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self._send(chat.take(body, {k.lower(): v for k, v in self.headers.items()}))
            except OSError:
                self.close_connection = True
            finally:
                with chat.lock:
                    chat.at_once -= 1

        def _send(self, one: Answer) -> None:
            time.sleep(one.hang)
            if one.slam:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(one.status)
            for name, value in one.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(one.body) + (one.cut or 0)))
            self.end_headers()
            step = 1 if one.drip else max(1, len(one.body))
            for start in range(0, len(one.body), step):
                self.wfile.write(one.body[start : start + step])
                self.wfile.flush()
                time.sleep(one.drip)
            if one.cut:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    chat.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield chat
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
