"""What `from podium import …` promises: small, typed, documented, and quick to import."""

import importlib
import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import podium
import podium.cluster
import podium.kube
import podium.load
import podium.preemption
from docs.tables import api


@pytest.mark.parametrize("name", podium.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name: str) -> None:
    found = getattr(podium, name)
    if inspect.isclass(found):
        assert vars(found).get("__doc__"), f"{name} has no docstring of its own"
    elif inspect.isfunction(found):
        assert found.__doc__, f"{name} has no docstring"


def test_public_names_are_where_type_checkers_look_for_them() -> None:
    for name in podium.__all__:
        home = importlib.import_module(podium._MODULE_OF[name])
        assert getattr(podium, name) is getattr(home, name)
    assert set(podium._MODULE_OF) == set(podium.__all__)


def test_the_names_of_measured_load_are_where_type_checkers_look_for_them() -> None:
    for name in podium.load.__all__:
        home = importlib.import_module(f"podium.load.{podium.load._MODULE_OF[name]}")
        assert getattr(podium.load, name) is getattr(home, name)
    assert set(podium.load._MODULE_OF) == set(podium.load.__all__) <= set(dir(podium.load))
    with pytest.raises(AttributeError, match=r"module 'podium\.load' has no attribute 'Nope'"):
        podium.load.Nope  # noqa: B018  (reading it raises)


@pytest.mark.parametrize(
    "module", [podium, podium.cluster, podium.kube, podium.load, podium.preemption], ids=lambda module: module.__name__
)
def test_every_public_name_is_in_the_reference(module: ModuleType) -> None:
    written = api.page()
    others = written.partition("### Other types of Kubernetes")[2].partition("\n#")[0]
    unnamed = {"Resource", "Action"}  # they have a table of their own
    missing = [
        name
        for name in set(module.__all__) - unnamed
        if f"`{name}`" not in others
        and not any(f"`from {each} import {name}`" in written for each in (module.__name__, "podium"))
    ]
    assert missing == []


def test_all_names_are_listed() -> None:
    assert set(podium.__all__) <= set(dir(podium))


@pytest.mark.parametrize("module", ["podium.kube", "podium.cluster"])
def test_every_name_that_a_contract_module_lists_is_there_and_documented(module: str) -> None:
    contract = importlib.import_module(module)
    assert sorted(set(contract.__all__)) == sorted(contract.__all__)
    for name in contract.__all__:
        found = inspect.unwrap(getattr(contract, name))
        if inspect.isfunction(found):
            assert found.__doc__, f"{module}.{name} has no docstring"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'podium' has no attribute 'Nope'"):
        podium.Nope  # noqa: B018  (reading it raises)


def test_importing_podium_loads_nothing_that_takes_long() -> None:
    program = "import sys, podium.load; print(sorted(m for m in sys.modules if m.split('.')[0] in ('podium', 'numpy')))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "['podium', 'podium.load']\n"
