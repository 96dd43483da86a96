import pytest

from served import Runs, Served


@pytest.fixture(scope="session")
def runs():
    made = Runs()
    yield made
    made.close()


@pytest.fixture(scope="session")
def both(runs):
    """Self-attention and alpha-Translution, side by side."""
    return runs.trained("self_attention"), runs.trained("alpha_translution")


@pytest.fixture(scope="session")
def served(both):
    page = Served(*both)
    yield page
    page.close()
