"""The tests run from the source tree (PYTHONPATH=python) or against an installed package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# Cases are small, and ctest runs other tests beside: more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config):
    config.addinivalue_line("markers", "build_tree: needs programs of the build tree")


def pytest_collection_modifyitems(items):
    for item in items:
        if {"build", "cases"} & set(item.fixturenames):
            item.add_marker("build_tree")


@pytest.fixture(scope="session")
def source():
    return HERE.parents[1]


@pytest.fixture(scope="session")
def build(source):
    """The build tree, which has the programs that some tests run. TRANSLUTION_BUILD= skips these."""
    named = os.environ.get("TRANSLUTION_BUILD", source / "build")
    if not named:
        pytest.skip("without a build tree")
    return Path(named)


@pytest.fixture(scope="session")
def run_python():
    """Runs code in a new interpreter with these variables; None unsets one. Away from the source
    tree: the folder in which an interpreter starts comes first on its path."""

    def run(code, check=True, **variables):
        environment = {**os.environ, **variables}
        environment = {name: value for name, value in environment.items() if value is not None}
        return subprocess.run([sys.executable, "-c", code], env=environment, check=check,
                              capture_output=True, text=True, cwd="/")

    return run


@pytest.fixture(scope="session")
def cases(build, tmp_path_factory):
    """What the C++ program tests/python/model_cases.cpp writes."""
    folder = tmp_path_factory.mktemp("model_cases")
    program = build / "tests" / "model_cases"
    assert program.exists(), f"{program} is missing: build the target model_cases"
    subprocess.run([program, folder], check=True)
    return folder
