"""Tiny models, built once; torch with one thread, for the machine is shared."""

import pytest
from tiny_models import TinyModels, save_models


@pytest.fixture(scope="session")
def tiny(neural: None, tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    """Folders of checkpoints."""
    del neural
    import torch  # noqa: PLC0415 - of the extra `neural`

    torch.set_num_threads(1)
    return save_models(tmp_path_factory.mktemp("tiny"))
