"""Whatever is sent to the judging pages: a page that says so, never a bug, never half an answer."""

from pathlib import Path
from typing import get_args
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st
from judging_stage import Stages, fields_of

from heldout.judging.campaign.judgments import Reason

words = st.text(max_size=30)
names = st.sampled_from(
    ["token", "stamp", "choice", "reason", "by", "active_ms", "batch", "worker", "workerId"]
)
values = st.one_of(
    words,
    st.sampled_from(["a", "b", "none", *get_args(Reason), "key", "0", "1", "99999999999999999999"]),
)
forms = st.dictionaries(st.one_of(names, words), values, max_size=8)
paths = st.one_of(
    words, st.sampled_from(["item", "exit", "done", "keep", "consent", "0", "1", "2"])
)


def test_no_request_finds_a_bug(tmp_path: Path) -> None:
    with Stages(tmp_path) as stages:
        one = stages.make()
        root = one.begin()
        token = root.removeprefix("/a/")

        @given(
            start=st.sampled_from(["/a", root, one.link, "", f"{root}/item"]),
            parts=st.lists(paths, max_size=3),
            method=st.sampled_from(["GET", "POST", "PUT", "HEAD"]),
            form=forms,
            signed=st.booleans(),
        )
        def send(
            start: str, parts: list[str], method: str, form: dict[str, str], *, signed: bool
        ) -> None:
            fields = form | ({"token": token} if signed else {})
            address = "/".join([start, *(quote(part, safe="") for part in parts)]) or "/"
            page = one.client.call(method, address, params=form, data=fields)
            assert page.status_code in {200, 303, 400, 403, 404, 405, 409, 410, 413, 422}
            assert "content-security-policy" in page.headers

        send()
        assert one.judgments() == ()  # nothing without a stamp


def test_no_form_with_a_stamp_finds_a_bug_or_leaves_half_an_answer(tmp_path: Path) -> None:
    with Stages(tmp_path) as stages:
        one = stages.make()
        root = one.begin()

        @given(form=forms)
        def send(form: dict[str, str]) -> None:
            fields = fields_of(one.client.get(f"{root}/item/1"))
            before = one.judgments()
            page = one.post(f"{root}/item/1", {**fields, **form})
            assert page.status_code in {303, 403, 422}
            after = one.judgments()
            assert after[: len(before)] == before
            assert len(after) - len(before) in ({0, 1} if page.status_code == 303 else {0})
            for row in after:
                assert (row.preferred is None) == (row.reason is not None)

        send()
