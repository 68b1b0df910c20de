"""Names of ir_datasets that the tests themselves register."""

from collections.abc import Iterator
from typing import Any

import pytest

DOCUMENTS = b"d1\tone  document\nd2\tanother\n"
QUERIES = b"q1\twho\nq2\twhat  now\n"
QRELS = b"q1 0 d1 2\nq2 0 d2 0\nq1 0 d2 1\n"
SUBTOPICS = b"q1 1 d1 1\nq1 2 d1 0\nq1 2 d2 2\n"


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The library with datasets more, of local files, and nothing written at home."""
    place = tmp_path_factory.mktemp("ir_datasets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IR_DATASETS_HOME", str(place))
        import ir_datasets  # type: ignore[import-untyped]  # noqa: PLC0415 - looks for its folder

        formats, local = ir_datasets.formats, ir_datasets.util.LocalDownload

        def file(name: str, content: bytes) -> Any:
            (place / name).write_bytes(content)
            return local(place / name)

        docs = formats.TsvDocs(file("d.tsv", DOCUMENTS))
        queries = formats.TsvQueries(file("q.tsv", QUERIES))
        qrels = formats.TrecQrels(file("qrels", QRELS), {})
        kinds = {
            "heldout-named": (docs, queries, qrels),
            "heldout-named/documents": (docs,),
            "heldout-named/unlabelled": (docs, queries),
            "heldout-named/test": (queries, qrels),
            "heldout-named/parts": (queries, formats.TrecSubQrels(file("parts", SUBTOPICS), {})),
            "heldout-named/texts": (queries,),
        }
        for name, components in kinds.items():
            ir_datasets.registry.register(name, ir_datasets.Dataset(*components))
        yield ir_datasets
        for name in kinds:
            del ir_datasets.registry._registered[name]
