"""Read an experiment file: merge it over the shared one, apply `key=value`, and say in one sentence what is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from ldsvm.datasets.catalog import catalogue
from ldsvm.datasets.dataset import DataError
from ldsvm.datasets.transformers import permit
from ldsvm.datasets.words import one_of, slug, unknown
from ldsvm.experiment.config.places import is_deployed
from ldsvm.experiment.config.schema import Config, MethodConfig, Paths
from ldsvm.experiment.config.spaces import ROWS, Range
from ldsvm.experiment.config.split import CrossValidationConfig, SplitConfig
from ldsvm.experiment.config.yaml_merge import ConfigError as ConfigError
from ldsvm.experiment.config.yaml_merge import found, override, read, short, tree_of
from ldsvm.methods import MissingPackage, NotAClassifier, lookup
from ldsvm.metrics import DEFAULT, metric

MOST_POINTS = 100_000  # of a grid; they are all held in memory


def load_config(path: str | Path, overrides: Sequence[str] = (), *, root: Path) -> Config:
    """Load and check an experiment.

    path: the file, looked for in the working directory and then in `root`, the project's folder.
    overrides: "key=value" with a dotted key and a YAML value. They override the file, which overrides
    `root/conf/base.yaml`. From now on, transformers and classifiers that the file names by import path may be used,
    except in deployed runs, see `ldsvm.datasets.transformers`. Raises ConfigError with one sentence.
    """
    tree = tree_of(path, overrides, root=root)
    try:
        config = Config.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(f"{path}: {sentence(error, tree, Config)}") from None
    if not is_deployed():
        permit([*config.transformers, *config.classifiers, *config.metric_paths])
    _check_names(config, path)
    _check_claims(config, path)
    _check_metrics(config, path)
    _check_production(config, path)
    for name, method in config.methods.items():
        _check_method(method, f"{path}: methods.{name}", config)
    try:
        paths = {key: (root / value.expanduser()).resolve() for key, value in config.paths}
        files = {key: found(getattr(config.dataset, key), root) for key in ("path", "test_path")}
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{path}: a path is not valid ({error}).") from None
    return config.model_copy(
        update={
            "paths": config.paths.model_copy(update=paths),
            "dataset": config.dataset.model_copy(update={key: text for key, text in files.items() if text}),
        }
    )


def cache_folder(overrides: Sequence[str], *, root: Path) -> Path:
    """Return the folder of prepared data: `paths.cache` of the shared file, or of an override, the only one allowed."""
    tree = read(root / "conf" / "base.yaml")
    for text in overrides:
        if text.partition("=")[0] != "paths.cache":
            raise ConfigError(f'command line: this command does not use "{text}"; allowed: paths.cache=FOLDER.')
        override(tree, text)
    try:
        return (root / Paths.model_validate(tree["paths"]).cache.expanduser()).resolve()
    except (ValidationError, OSError, ValueError, RuntimeError):
        raise ConfigError(f"command line: {overrides[-1]} is not valid; allowed: paths.cache=FOLDER.") from None


def variants(config: Config, path: str | Path, overrides: Sequence[str], *, root: Path) -> list[Config]:
    """Return the experiment once for each value of what it varies, and as it is when it varies nothing."""
    if config.vary is None:
        return [config]
    key = config.vary.key
    each = [[*overrides, f"{key}={json.dumps(value)}", "vary=null"] for value in config.vary.values]
    return [load_config(path, given, root=root) for given in each]


def as_yaml(config: Config) -> str:
    """Return a configuration as YAML, without the folders of this machine."""
    tree = config.model_dump(mode="json", exclude={"paths"}, exclude_defaults=True)
    tree["dataset"] |= {k: Path(v).name for k, v in tree["dataset"].items() if k in ("path", "test_path") and v}
    text: str = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    return text


def sentence(error: ValidationError, tree: dict[str, Any], model: type[BaseModel]) -> str:
    """Return a sentence on the first mistake in a tree, to follow the file's name. model: the model of the tree."""
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])  # often a key that is misspelt
    place = first["loc"] if first["type"] == "missing" else _in_tree(first["loc"], tree)
    path = ".".join(str(part) for part in place)
    if first["type"] == "extra_forbidden":
        return unknown(f'key "{path}"', str(place[-1]), _keys(model, first["loc"][:-1]))
    if first["type"] == "missing":
        return f'key "{path}" is missing.'
    if first["type"].startswith("union_tag"):
        if first["type"] == "union_tag_not_found":
            return f'key "{path}.kind" is missing.'
        return f'key "{path}.kind" has value {short(first["input"]["kind"])}; allowed: {first["ctx"]["expected_tags"]}.'
    rule = first["msg"].removeprefix("Value error, ")
    if first["type"] == "string_type" and isinstance(first["input"], bool):
        rule = "allowed: text; words such as yes and no need quotes in YAML"
    if first["type"] == "list_type" and "search" in place:
        rule = "allowed: a list of values, such as [0.1, 1, 10], or a range, such as {log_uniform: [0.1, 10]}"
    if first["type"] in ("tuple_type", "too_short") and place == ["metrics"]:
        rule = "allowed: a list of one or more, such as [error, log_loss]"
    rule = rule[:1].lower() + rule[1:]
    return f'key "{path}" has value {short(first["input"])}; {rule.removesuffix(".")}.'


def _in_tree(place: Sequence[int | str], tree: Any) -> list[int | str]:
    """Drop the marks that pydantic adds to a path (the member of a union, the word [key])."""
    found: list[int | str] = []
    for part in place:
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            continue
        found.append(part)
    return found


def _keys(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """Return the keys that are allowed at one place, by walking the models along the path, the marks of unions too."""
    members = [model]
    for part in place:
        if tagged := [one for one in members if len(members) > 1 and part in _kinds(one)]:
            members = tagged
        elif part in members[0].model_fields:
            members = _models(members[0].model_fields[str(part)].annotation) or members
    return list(members[0].model_fields)


def _kinds(model: type[BaseModel]) -> tuple[Any, ...]:
    """Return the values of its key kind that tell a model from the others of a union."""
    return get_args(model.model_fields["kind"].annotation) if "kind" in model.model_fields else ()


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models inside a type such as dict[str, Model] | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _check_names(config: Config, path: str | Path) -> None:
    known = sorted(catalogue())
    if config.dataset.path is None and config.dataset.name not in known:
        wrong = config.dataset.name
        raise ConfigError(f"{path}: " + unknown(f'dataset.name "{wrong}"', wrong, known))
    for key, names in (("problems", [problem.name for problem in config.problems]), ("methods", list(config.methods))):
        folders = [slug(name) for name in names]
        for name, folder in zip(names, folders, strict=True):
            if folders.count(folder) > 1:
                raise ConfigError(
                    f'{path}: key "{key}" has the name "{name}" twice; names must differ in their letters or digits.'
                )


def _check_claims(config: Config, path: str | Path) -> None:
    known = list(config.methods)
    for i, claim in enumerate(config.claims):
        for name in [*claim.of, *(claim.than if claim.than != "others" else ())]:
            if claim.than == "others" and set(claim.of) & set(config.others):
                raise ConfigError(
                    f'{path}: claims.{i}.of names a method that is one of "others"; allowed: our methods.'
                )
            if name not in known:
                raise ConfigError(f"{path}: " + unknown(f'claims.{i} names the method "{name}", which', name, known))


def _check_metrics(config: Config, path: str | Path) -> None:
    names = {"metrics": config.metrics, "search.objective": (config.search.objective,)}
    if config.production is not None:
        names |= {"production.gate.metric": (config.production.gate.metric,)}
        names |= {"production.gate.metrics": tuple(config.production.gate.metrics)}
    for key, given in names.items():
        for name in given:
            if given.count(name) > 1:
                raise ConfigError(f'{path}: key "{key}" has the metric "{name}" twice; allowed: each metric once.')
            if name == "cost" and config.costs is None:
                said = "which needs the costs of mistakes, such as costs: {missed: 5, false_alarm: 1}."
                raise ConfigError(f'{path}: key "{key}" has the metric "cost", {said}')
            if key == "production.gate.metrics" and name == DEFAULT:
                said = "put rules for the error in production.gate.error_percent, in per cent."
                raise ConfigError(f'{path}: key "{key}" has the metric "{name}"; {said}')
            try:
                metric(name)
            except DataError as error:
                raise ConfigError(f"{path}: {key}: {error}") from None


def _check_production(config: Config, path: str | Path) -> None:
    if (found := config.production) is None:
        return
    ours = [name for name in config.methods if name not in config.others and config.methods[name].labels is None]
    if not ours:
        raise ConfigError(
            f'{path}: production.method is "{found.method}"; allowed: a method of ours, such as one with estimator '
            "ldsvm, without the key labels, but methods has none."
        )
    if found.method not in ours:
        raise ConfigError(f"{path}: " + unknown(f'production.method "{found.method}"', found.method, ours))
    if isinstance(config.split, CrossValidationConfig):
        raise ConfigError(
            f"{path}: production needs one model, and split.kind cross_validation trains {config.split.count}; leave "
            "out production, or choose another split.kind."
        )
    if config.vary is not None or config.split.repeats > 1:
        raise ConfigError(f"{path}: production needs one model; leave out vary, and set split.repeats to 1.")


def _check_method(method: MethodConfig, where: str, config: Config) -> None:
    """Refuse parameters the estimator does not have, and values it would refuse hours later in `fit`."""
    size = math.prod(len(values) for values in method.space.values() if isinstance(values, list))
    if size > MOST_POINTS:
        raise ConfigError(f"{where}.search has {size:,} combinations; allowed: at most {MOST_POINTS:,}.")
    try:
        known = list(lookup(method.estimator).make().get_params())
    except MissingPackage:
        return  # its row says so
    except NotAClassifier as error:
        raise ConfigError(f"{where}: {error}") from None
    for section, keys in (("params", method.params), ("search", method.space)):
        for key in keys:
            if key not in known:
                raise ConfigError(unknown(f"{where}.{section}.{key}", key, known))
    _check_executor(method, where, config)
    for key in method.search if method.search != "default" else ():
        if key in method.params:
            raise ConfigError(f"{where}.search.{key} is also in params; allowed: each parameter in only one of them.")
    for point in [{}, *_extremes(method), *_check_strategy(method, where, config)]:
        try:
            model = method.make(point, seed=config.seed, n_jobs=config.n_jobs)
            for part in _parts(model):
                if hasattr(part, "_parameter_constraints"):
                    part._validate_params()  # scikit-learn's own check, the one that `fit` runs first
            if method.executor is not None:
                from ldsvm.blocks.fitting import check  # which loads numba

                check(model)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from None


def _check_executor(method: MethodConfig, where: str, config: Config) -> None:
    """Refuse searches that do not go together with fits over blocks of rows."""
    if method.executor is None:
        return
    if method.on_ray and (config.search.workers > 1 or config.search.ray_address is not None):
        raise ConfigError(
            f'{where}.executor.kind is "ray" while the trials already run on Ray; allowed: serial or threads, or '
            "search.workers 1 without search.ray_address."
        )
    if method.on_ray and method.strategy is not None and method.strategy.resource == ROWS:
        raise ConfigError(
            f'{where}.strategy.resource is "{ROWS}", which executor.kind ray does not support; allowed: another '
            "resource, such as max_iter, or executor.kind serial or threads."
        )


def _extremes(method: MethodConfig) -> list[dict[str, Any]]:
    """Return one point for each value of each parameter, and for each end of a range."""
    values = {name: tried.ends if isinstance(tried, Range) else tried for name, tried in method.space.items()}
    return [{name: value} for name, those in values.items() for value in those]


def _check_strategy(method: MethodConfig, where: str, config: Config) -> list[dict[str, Any]]:
    """Refuse an unknown resource, and a minimum that a full fit does not exceed; return the smallest point to check."""
    strategy = method.strategy
    if strategy is None or strategy.resource is None or strategy.min_resources is None:
        return []
    name, least = strategy.resource, strategy.min_resources
    rows = config.split.train if isinstance(config.split, SplitConfig) else None
    most = {ROWS: rows if isinstance(rows, int) else math.inf}  # what a share comes to, only the data tell
    most |= {k: n for k, n in method.settings.items() if type(n) is int and n > 1 and k not in method.space}
    if name not in most:
        raise ConfigError(f'{where}.strategy.resource has value "{name}"; {one_of(name, most)}')
    if least >= most[name]:
        raise ConfigError(
            f"{where}.strategy.min_resources is {least}; allowed: below {most[name]}, the {name} of a full fit."
        )
    return [] if name == ROWS else [{name: least}]


def _parts(estimator: Any) -> list[Any]:
    """Return an estimator and all estimators inside it, since a pipeline does not check the parameters of its steps."""
    inner = [value for value in estimator.get_params().values() if hasattr(value, "get_params")]
    return [estimator, *inner]
