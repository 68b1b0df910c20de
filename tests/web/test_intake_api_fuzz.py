"""What schemathesis makes of the API's own description: no call ends in an error of the server.

`HELDOUT_EXAMPLES=2000 python -m pytest tests/web/test_intake_api_fuzz.py` runs long.
"""

import os
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from team_stage import MakePlace, Place, declared, files_of, make_place

from heldout.intake.uploads import IntakeLimits

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    import schemathesis
    from schemathesis import checks
    from schemathesis.core.result import Ok

__all__ = ["make_place"]

API = "/api/v1"
EXAMPLES = int(os.environ.get("HELDOUT_EXAMPLES", "3"))
CHECKS = (
    checks.not_a_server_error,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.status_code_conformance,
    checks.response_headers_conformance,
    checks.negative_data_rejection,
)
"""Of every answer: the status, type and shape that the description names, and never a 5xx."""


@pytest.fixture
def place(make_place: MakePlace) -> Place:
    """One that takes many uploads."""
    many = 1 << 40
    most = IntakeLimits(of_team=many, of_team_a_day=many, at_once=many, bytes=many, free_bytes=0)
    return make_place(most=most)


def test_no_call_that_the_description_allows_or_forbids_breaks_the_server(place: Place) -> None:
    team = place.as_team(place.join()[1])
    begun = team.post(f"{API}/uploads", json=declared(files_of())).json()
    here = {"upload": begun["id"], "name": begun["files"][0]["name"], "submission": begun["owner"]}
    token = {"Authorization": team.headers["authorization"]}
    schema = schemathesis.openapi.from_dict(team.get(f"{API}/openapi.json").json())
    called = []
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        called.append(f"{operation.method} {operation.path}")

        @settings(
            max_examples=EXAMPLES,
            phases=[Phase.generate],
            derandomize=EXAMPLES < 100,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), known=st.booleans())
        def call(case: Any, known: bool) -> None:  # noqa: FBT001 - drawn
            if known:
                asked = case.path_parameters or {}
                case.path_parameters = {**asked, **{k: v for k, v in here.items() if k in asked}}
            case.call_and_validate(base_url=f"{place.url}{API}", headers=token, checks=list(CHECKS))

        call()
    assert len(called) == 9, called
    assert place.client.get("/health").text == "alive"
