"""Prints docs/reference/http.md: python tools/http_api.py > docs/reference/http.md."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

from heldout.intake.api import PREFIX, make_api
from heldout.intake.service import Intake

HEAD = """# The HTTP API

What `heldout serve --board DIR --uploads DIR` answers below `{prefix}`, printed by `python tools/http_api.py`. The server gives
the same as OpenAPI at `{prefix}/openapi.json`. A change that a caller could notice gets another version in the address.

```
curl https://board.example{prefix}/standings?limit=10
curl -H "Authorization: Bearer $HELDOUT_TEAM_TOKEN" https://board.example{prefix}/quota
```

- **Standings** need no token. They are the same bytes for everybody: send their `ETag` back in `If-None-Match`, and get 304 while the
  board has not changed. Scores have the published digits.
- **Everything else** needs a team's token, which the page of an [invitation](../how-to/accept-uploads.md) shows once.
- **Pages**: `offset` and `limit`; `next` is the offset of the next page, `null` at the end.
- **Times** are UTC.
- **Refusals** are problem documents (RFC 9457, `application/problem+json`) with a `code` of [the errors](errors.md).
- **Uploads** go on: begin with name, size and SHA-256 of each file; send the bytes from `received` on, in pieces of any size; finish.
  Begin again with the same files, and you get the same upload. An upload without a new byte ends after two days.

## Calls
"""  # noqa: E501 - lines of the page


def make_page() -> str:
    """The page, by the description of the API itself."""
    document = make_api(cast("Intake", None)).openapi()
    return "\n".join([HEAD.format(prefix=PREFIX), *_calls(document), "", *_documents(document), ""])


def _calls(document: Mapping[str, Any]) -> Iterator[str]:
    yield "| call | what it does | answer | token |"
    yield "| --- | --- | --- | --- |"
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            query = [one["name"] for one in call.get("parameters", ()) if one["in"] == "query"]
            asked = f"?{'&'.join(f'{name}=' for name in query)}" if query else ""
            does = " ".join(call["description"].split())
            token = "yes" if call.get("security") else "no"
            name = f"`{method.upper()} {path}{asked}`"
            yield f"| {name} | {does} | {_answer(call)} | {token} |"


def _answer(call: Mapping[str, Any]) -> str:
    status, answer = next(iter(call["responses"].items()))
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return f"{status} {_type(schema)}" if schema else status


def _documents(document: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in document["components"]["schemas"].items():
        yield f"## {name}"
        yield ""
        yield " ".join(schema["description"].split())
        yield ""
        yield "| field | type | meaning |"
        yield "| --- | --- | --- |"
        for field, told in schema["properties"].items():
            yield f"| `{field}` | {_type(told)} | {told.get('description', '')} |"
        yield ""


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    named: str = schema.get("type", "any")
    return {"date-time": "time"}.get(schema.get("format", ""), named)


if __name__ == "__main__":
    sys.stdout.write(make_page())
