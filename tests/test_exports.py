"""What packages offer is what they load when it is asked for, and nothing else is loaded."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import onoma

PACKAGES = ["onoma", *(f"onoma.{found.name}" for found in pkgutil.iter_modules(onoma.__path__) if found.ispkg)]
LAZY = ["onoma", "onoma.encoders", "onoma.linking", "onoma.pairs", "onoma.terminology", "onoma.training"]


@pytest.mark.parametrize("package", LAZY)
def test_what_is_declared_for_types_is_what_is_loaded(package: str) -> None:
    loaded = importlib.import_module(package)
    tree = ast.parse(Path(str(loaded.__file__)).read_text(encoding="utf-8"))
    for_types, at_run = (node for node in tree.body if isinstance(node, ast.If))
    declared = {
        (statement.module, name.name)
        for statement in for_types.body
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }
    call = next(node for node in ast.walk(at_run) if isinstance(node, ast.Call))
    homes = ast.literal_eval(call.args[1])
    rooms = ast.literal_eval(call.keywords[0].value) if call.keywords else []
    given = {(module, name) for module, names in homes.items() for name in names}
    assert declared == given | {(package, room) for room in rooms}
    assert loaded.__all__ == sorted(name for _, name in given)
    for name in (*loaded.__all__, *rooms):
        assert getattr(loaded, name) is not None
        assert name in dir(loaded)


@pytest.mark.parametrize("package", LAZY)
def test_nothing_else_is_offered_to_who_completes_names(package: str) -> None:
    loaded = importlib.import_module(package)
    seen = {name for name in dir(loaded) if not name.startswith("__")}
    rooms = (
        {found.name for found in pkgutil.iter_modules(loaded.__path__)}
        if package in {"onoma", "onoma.training"}
        else set()
    )
    assert seen <= {*loaded.__all__, *rooms}
    assert not seen & {"lazily", "lazy", "TYPE_CHECKING", "annotations", "report_nothing", "reporting"}
    assert "__version__" in dir(onoma)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there(package: str) -> None:
    opened = importlib.import_module(package)
    missing = [name for name in getattr(opened, "__all__", ()) if not hasattr(opened, name)]
    assert not missing


@pytest.mark.parametrize("package", LAZY)
def test_what_is_not_offered_is_refused(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Linkr'"):
        _ = importlib.import_module(package).Linkr
    with pytest.raises(ImportError, match="cannot import name 'Linkr'"):
        exec(f"from {package} import Linkr")


def test_modules_of_a_package_are_there_as_if_something_had_imported_them() -> None:
    asked = ["linking.calibration", "terminology.catalogue", "training.grid_run", "training.alignment_config"]
    script = f"import onoma; print({', '.join(f'onoma.{name}.__name__' for name in asked)})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"onoma.{name}" for name in asked]


@pytest.mark.parametrize(
    ("code", "spared"),
    [
        ("import onoma", ["numpy", "polars", "onoma.linking", "onoma.terminology"]),
        ("import onoma.linking, onoma.terminology, onoma.encoders, onoma.pairs", ["numpy", "polars", "onnxruntime"]),
        (
            "from onoma.linking import Linker",
            ["torch", "onoma.linking.tuning", "onoma.linking.build", "onoma.terminology.catalogue.fetching",
             "onoma.terminology.importing", "onoma.encoders.saving", "onoma.pairs.bitext"],
        ),
    ],
)  # fmt: skip
def test_what_nobody_asked_for_is_not_loaded(code: str, spared: list[str]) -> None:
    script = f"import sys; {code}; print([name for name in {spared} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_defaults_of_settings_are_seen_without_a_plugin_of_pydantic() -> None:
    """Checkers of types know a field's default by its keyword alone (PEP 681); else each setting is one to be given."""
    hidden = [
        f"{file.name}:{node.lineno}"
        for file in Path(str(onoma.__file__)).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Field" and node.args
    ]
    assert not hidden
