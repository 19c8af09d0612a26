"""What several test files share."""

import pytest


@pytest.fixture
def one_thread():
    """Threads that wait for each other make small steps slow on a busy machine."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
