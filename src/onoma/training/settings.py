"""Make a configuration from a recipe and ``--set key=value``, for every kind of training.

Resolution order: defaults < recipe < ``--set``. An unknown key is refused; the error names the nearest known one.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from onoma.artifacts import read_manifest
from onoma.errors import ConfigError, InputError, did_you_mean
from onoma.training.shipped import read_shipped, shipped_names

C = TypeVar("C", bound=BaseModel)
_LENGTHS = {"steps", "epochs", "minutes"}
_BATCHES = ("batch_pairs", "batch_queries", "batch_mentions", "batch_names")
_CALLED_ELSEWHERE = {
    "lr": "learning_rate",
    "num_epochs": "epochs",
    "num_train_epochs": "epochs",
    "max_steps": "steps",
    "max_length": "max_tokens",
    "max_seq_length": "max_tokens",
    "gradient_accumulation_steps": "accumulation",
    "max_grad_norm": "max_gradient_norm",
    "ema": "average",
    "early_stopping": "patience",
    "early_stopping_patience": "patience",
    "gradcache": "chunk_names",
    "model_name_or_path": "base",
}
"""What settings are called in other trainers."""


class NamedSettings(BaseModel, Generic[C]):
    """A recipe: a named configuration with a sentence that describes it."""

    model_config = ConfigDict(frozen=True)

    kind: ClassVar[str]
    """Of the files it is read from, see `onoma.training.shipped`."""

    name: str
    """Of the recipe; "" of settings that are no recipe's."""
    description: str
    config: C
    own: Mapping[str, str] = {}
    """The recipe's settings before any were given in place of its own, as `settings_of` shows them."""

    @property
    def origin(self) -> dict[str, Any] | None:
        """Where the settings are from: the recipe, and those ``overridden`` in it, as written to ``train.json``."""
        if not self.name:
            return None
        others = {key for key, value, _ in settings_of(self.config) if self.own.get(key) != value}
        # Of another loss all settings are others.
        overridden = sorted(key for key in others if "." not in key or key.partition(".")[0] not in others)
        return {"name": self.name, "overridden": overridden}

    def as_toml(self) -> str:
        """The recipe as a file that `load` reads: every setting, except those that are unset."""
        said = {"description": self.description} if self.description else {}
        values = {**said, **self.config.model_dump(mode="json")}
        parts = {key: value for key, value in values.items() if isinstance(value, dict)}
        lines = [_in_toml(key, value) for key, value in values.items() if key not in parts and value is not None]
        for name, part in parts.items():
            lines += ["", f"[{name}]", *(_in_toml(key, value) for key, value in part.items() if value is not None)]
        return "\n".join(lines) + "\n"

    @classmethod
    def of_folder(cls, folder: str | Path) -> Self:
        """The settings that an encoder or a reranker was trained with, as a recipe.

        Args:
            folder: The folder that training wrote.

        Raises:
            InputError: it was not trained by Onoma, or with another kind of recipe, or is the average of several.
            ArtifactError: there is no such folder, or it is damaged.
        """
        config = read_manifest(Path(folder)).config
        training = config.get("training")
        if not isinstance(training, dict) or not training.keys() <= cls.settings_class().model_fields.keys():
            raise InputError(f"no {cls.kind} was used to make this", path=folder, expected="what Onoma has trained")
        if averaged := config.get("averaged"):  # of which it has the settings that all have in common
            raise InputError(
                "this is the average of several encoders, each trained with settings of its own",
                path=folder,
                fix=f"name one of them: {', '.join(one['name'] for one in averaged)}",
            )
        said = config.get("recipe") or {}
        changed = f", with {', '.join(said['overridden'])} of its own" if said.get("overridden") else ""
        of_recipe = f" (recipe {said['name']}{changed})" if said.get("name") else ""
        return cls(
            name=Path(folder).resolve().name,
            description=f"What {Path(folder).resolve().name} was trained with{of_recipe}",
            config=resolve(cls.settings_class(), training, source=str(folder)),
        )

    @classmethod
    def names(cls) -> list[str]:
        """Names of the recipes of this kind shipped with Onoma, sorted."""
        return shipped_names(cls.kind)

    @classmethod
    def load(cls, name: str, overrides: Mapping[str, Any] | None = None) -> Self:
        """Load a recipe by name or path and apply ``key=value`` overrides.

        Args:
            name: A shipped recipe, or the path of a ``.toml`` file.
            overrides: Values, or their text in TOML or plain words (``"5e-5"``, ``"true"``, ``"cls"``, ``"none"``); a
                key with a dot is a setting of a part (``loss.scale``). Setting one of ``steps``, ``epochs`` and
                ``minutes`` unsets the other two.

        Raises:
            InputError: no such recipe, or the file is not TOML.
            ConfigError: an unknown key, or a value that it does not allow.
        """
        model = cls.settings_class()
        if not isinstance(overrides, Mapping | None):
            raise ConfigError(f'overrides are a mapping, e.g. {{"minutes": 1}}; found {type(overrides).__name__}.')
        values = read_shipped(cls.kind, name)
        description = str(values.pop("description", ""))
        own = dict(values)
        if overrides:
            given = {str(key): value for key, value in overrides.items()}
            if twice := [key for key in given if key != without_name(key) and without_name(key) in given]:
                raise ConfigError(f"{without_name(twice[0])} and {twice[0]} are one setting; give one of them.")
            if given.keys() & _LENGTHS:
                for length in _LENGTHS:
                    values.pop(length, None)
            # A part before its name, and that before its other settings.
            for key, value in sorted(given.items(), key=lambda item: ("." in item[0], not item[0].endswith(".name"))):
                _set(model, values, key, _parse(model, key, value) if isinstance(value, str) else value)
        config = resolve(model, values, source=name)
        try:
            as_it_is, given_keys = resolve(model, own, source=name), set[str]()
        except ConfigError:  # a recipe of one's own that is not whole without them
            as_it_is, given_keys = config, {key.partition(".")[0] for key in overrides or ()}
        shown = {key: value for key, value, _ in settings_of(as_it_is) if key.partition(".")[0] not in given_keys}
        return cls(name=Path(name).stem, description=description, config=config, own=shown)

    @classmethod
    def of(cls, recipe: Self | C | str) -> Self:
        """The given recipe, the recipe with the given name or file, or the given settings as a recipe without a name.

        Args:
            recipe: The recipe, its name or file, or its settings.

        Raises:
            InputError: there is no such recipe.
            ConfigError: it is a recipe of another kind, or something else.
        """
        if isinstance(recipe, str):
            return cls.load(recipe)
        if isinstance(recipe, cls):
            return recipe
        model = cls.settings_class()
        if not isinstance(recipe, model):
            raise ConfigError(
                f"training is told by a {cls.__name__}, its name, or a {model.__name__}; found {type(recipe).__name__}."
            )
        return cls(name="", description="", config=recipe)

    @classmethod
    def settings_class(cls) -> type[C]:
        """What holds the settings of this kind."""
        return cast("type[C]", cls.model_fields["config"].annotation)


def _in_toml(key: str, value: object) -> str:
    # What JSON writes of text, numbers, true and false, and lists of these is TOML too, but for DEL as it is. That and
    # others that a screen does not show, and might not be given, are escaped.
    written = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    return "".join(sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in written)


def resolve(model: type[C], values: Mapping[str, Any], *, source: str = "training settings") -> C:
    """Validate settings; `ConfigError` names the key, what it may be, and the nearest known key."""
    # TOML has dates, which are words here: base = 2024-05-01 is a folder.
    return model.model_validate_json(json.dumps(dict(values), default=str), context=source)


def problems_in_words(model: type[BaseModel], error: ValidationError) -> str:
    """What is wrong with settings, by key: what it may be, and the nearest known key."""
    lines = []
    for problem in error.errors():
        places = [str(place) for place in problem["loc"]]
        is_of_part = len(places) == 3 and places[0] in _parts_of(model)
        if problem["type"] == "extra_forbidden" and not is_of_part:
            key, known = places[0], sorted(model.model_fields)
            return f"there is no setting '{key}'.{_meant(model, key)} Known: {', '.join(known)}"
        if problem["type"] == "extra_forbidden":
            part, choice, name = places
            known = _fields_of_part(model, part, choice)
            others = _choices_with(model, part, name)
            meant = f" {part} = {' or '.join(others)} has it." if others else _meant_in_part(model, part, name, known)
            lines.append(f"{part} = {choice} has no setting '{name}'.{meant} Known: {', '.join(known) or 'none'}")
            continue
        if problem["type"].endswith("_type") and len(places) == 1 and places[0] in _parts_of(model):
            what = "left out" if problem["input"] is None else str(problem["input"])
            lines.append(f"{places[0]} cannot be {what}. Known: {', '.join(_names_of_part(model, places[0]))}")
            continue
        key = f"{places[0]}.{places[2]}" if is_of_part else ".".join(places)  # between them is the part's name
        if problem["type"] == "union_tag_invalid":
            context = problem["ctx"]
            names = [name.strip(" '") for name in str(context["expected_tags"]).split(",")]
            lines.append(
                f"{key}: there is no '{context['tag']}'.{did_you_mean(str(context['tag']), names)} "
                f"Known: {', '.join(names)}"
            )
            continue
        if problem["type"] == "union_tag_not_found":
            names = _names_of_part(model, key)
            lines.append(f'{key}: its settings need its name too, name = "{names[0]}". Known: {", ".join(names)}')
            continue
        if problem["type"] == "none_required":
            lines.append(f"{key} cannot be set here: {model.model_fields[key].description}")
            continue
        found = f" (found {problem['input']!r})" if key else ""
        lines.append(f"{key + ': ' if key else ''}{problem['msg'].removeprefix('Value error, ')}{found}")
    return "; ".join(lines)


def without_name(key: str) -> str:
    """The setting that a key means: ``loss.name`` is ``loss``."""
    return key.removesuffix(".name")


def settings_of(config: BaseModel) -> list[tuple[str, str, str]]:
    """(key, value, description) of every setting as ``--set`` takes them, those of its parts with a dot."""
    rows: list[tuple[str, str, str]] = []
    for key, field in type(config).model_fields.items():
        value = getattr(config, key)
        if isinstance(value, BaseModel):
            rows.append((key, value.model_dump()["name"], field.description or ""))
            rows += [
                (f"{key}.{name}", _shown(getattr(value, name)), part.description or "")
                for name, part in type(value).model_fields.items()
                if name != "name"
            ]
        else:
            rows.append((key, _shown(value), field.description or ""))
    return rows


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return str(list(value)) if value and isinstance(value[0], int) else "+".join(value)
    return "" if value is None else str(value)


def _default(model: type[BaseModel], key: str) -> Any:
    field = model.model_fields.get(key)
    return None if field is None else field.get_default(call_default_factory=True)


def _fields_of_part(model: type[BaseModel], part: str, name: str) -> list[str]:
    """Settings of a loss or a miner by its name."""
    choice = getattr(resolve(model, {"steps": 1, part: name}), part)
    return [field for field in type(choice).model_fields if field != "name"]


def _meant(model: type[BaseModel], key: str) -> str:
    """Which setting is meant by a key that is none."""
    asked = key.lower()
    elsewhere = _BATCHES if asked.endswith("batch_size") else (_CALLED_ELSEWHERE.get(asked),)
    for name in elsewhere:
        if name in model.model_fields:
            return f" Did you mean '{name}'?"
    of_parts = {part: _choices_with(model, part, asked) for part in _parts_of(model) if asked != "name"}
    meant = [f"'{part}.{asked}', of {part} = {' or '.join(choices)}" for part, choices in of_parts.items() if choices]
    return f" Did you mean {'; or '.join(meant)}?" if meant else did_you_mean(key, model.model_fields)


def _meant_in_part(model: type[BaseModel], part: str, name: str, known: list[str]) -> str:
    """Which setting of a loss or a miner is meant, first of the one that is chosen, then of the others."""
    if meant := did_you_mean(name, known):
        return meant
    nearest = get_close_matches(name.lower(), _settings_of_choices(model, part), n=1)
    return (
        f" Did you mean '{nearest[0]}', of {part} = {' or '.join(_choices_with(model, part, nearest[0]))}?"
        if nearest
        else ""
    )


def _settings_of_choices(model: type[BaseModel], part: str) -> list[str]:
    choices = get_args(model.model_fields[part].annotation)
    return sorted({key for choice in choices for key in choice.model_fields} - {"name"})


def _parts_of(model: type[BaseModel]) -> list[str]:
    """Settings that have settings: losses, miners and the like."""
    return [part for part in model.model_fields if isinstance(_default(model, part), BaseModel)]


def _choices_with(model: type[BaseModel], part: str, name: str) -> list[str]:
    """Choices for a part that have a setting called so."""
    choices = get_args(model.model_fields[part].annotation)
    return [str(choice.model_fields["name"].default) for choice in choices if name in choice.model_fields]


def settings_of_other_choices(config: BaseModel) -> list[tuple[str, str, str, str]]:
    """(key, value by itself, choice that has it, description) of what parts that are chosen otherwise would have."""
    rows: list[tuple[str, str, str, str]] = []
    for part in _parts_of(type(config)):
        for choice in get_args(type(config).model_fields[part].annotation):
            if isinstance(getattr(config, part), choice):
                continue
            name = f"{part} = {choice.model_fields['name'].default}"
            rows += [
                (f"{part}.{key}", _shown(field.get_default(call_default_factory=True)), name, field.description or "")
                for key, field in choice.model_fields.items()
                if key != "name"
            ]
    return rows


def _names_of_part(model: type[BaseModel], part: str) -> list[str]:
    """What can be chosen for a part."""
    return [choice.model_fields["name"].default for choice in get_args(model.model_fields[part].annotation)]


def _set(model: type[BaseModel], values: dict[str, Any], key: str, value: Any) -> None:
    part, dot, name = key.partition(".")
    if not dot or not isinstance(_default(model, part), BaseModel):
        values[key] = value
        return
    former = values.get(part, _default(model, part).name)
    if isinstance(former, str):
        former = {"name": former}
    if not isinstance(former, dict):  # what the recipe says is no part, and is refused as such
        return
    if name == "name" and former.get("name", value) != value:
        former = {}  # settings of another choice say nothing of this one
    values[part] = {**former, name: value}


def _parse(model: type[BaseModel], key: str, text: str) -> Any:
    """Text of ``--set`` to a value: the words themselves for a setting of text, else a TOML value where it is one."""
    annotation = model.model_fields[key].annotation if key in model.model_fields else None
    if annotation is str:
        return text
    if text.lower() in {"none", "null", ""}:
        return None
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if annotation == tuple[str, ...] | None and not text.startswith("["):
        return text  # "nan" is a language
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
