"""Valid and invalid experiment files, through the same function that the command line uses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from pydantic import BaseModel, ValidationError

from ldsvm.experiment.config import schema as models
from ldsvm.experiment.config.load import ConfigError, load_config
from ldsvm.experiment.config.spaces import Range
from ldsvm.report.studies.config import is_study, load_study

ROOT = Path(__file__).resolve().parents[2]
LISTS = ("base", "paper", "automations")  # no experiments
FILES = sorted(p for p in (ROOT / "conf").rglob("*.yaml") if p.stem not in LISTS)


def tree() -> dict[str, Any]:
    """A small valid file as a tree, to be damaged."""
    return {
        "name": "small",
        "title": "Small",
        "dataset": {"name": "digits"},
        "problems": [{"name": "10 classes", "labels": "original"}],
        "split": {"kind": "stratified", "train": 0.5, "validation": 0.25, "test": 0.25},
        "methods": {"Gaussian SVM": {"estimator": "gaussian_svm", "params": {"C": 1}, "search": {"gamma": [0.1]}}},
    }


def load(tmp_path: Path, content: Any, *overrides: str) -> models.Config:
    file = tmp_path / "case.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return load_config(file, overrides, root=ROOT)


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem)
def test_every_file_of_the_project_is_valid(file: Path) -> None:
    load_any = load_study if is_study(file, root=ROOT) else load_config
    kept = "retrain_" if file.parent.name == "production" else ""  # beside the experiment of the same data
    assert load_any(file, root=ROOT).name == f"{kept}{file.stem}"


def test_file_wins_over_base_and_override_over_both(tmp_path: Path) -> None:
    assert load(tmp_path, tree()).seed == 0
    assert load(tmp_path, {**tree(), "seed": 3}).seed == 3
    assert load(tmp_path, {**tree(), "seed": 3}, "seed=4").seed == 4
    assert load(tmp_path, tree(), "dataset.missing=drop").dataset.name == "digits"


def test_a_file_without_a_title_has_its_name_as_such(tmp_path: Path) -> None:
    untitled = {key: value for key, value in tree().items() if key != "title"}
    assert load(tmp_path, untitled).title == "small"
    assert load(tmp_path, untitled, "title=Other").title == "Other"


def test_every_split_has_a_seed(tmp_path: Path) -> None:
    assert load(tmp_path, tree(), "seed=4294967295").seed == 2**32 - 1
    with pytest.raises(ConfigError, match=r"seed plus the 2 splits must be at most 2\*\*32"):
        load(tmp_path, tree(), "seed=4294967295", "split.repeats=2")


def test_a_default_search_is_the_registrys_space_less_what_is_fixed(tmp_path: Path) -> None:
    method = {"estimator": "gaussian_svm", "params": {"C": 1}, "search": "default"}
    found = load(tmp_path, {**tree(), "methods": {"SVM": method}}).methods["SVM"]
    assert list(found.space) == ["gamma"]
    assert len(found.space["gamma"]) > 1


def test_ranges_and_a_strategy_are_read_and_decide_the_folder_of_the_results(tmp_path: Path) -> None:
    key = "methods.Gaussian SVM"
    drawn = [f"{key}.search.gamma={{log_uniform: [1e-3, 1]}}", f"{key}.strategy={{n_candidates: 9}}"]
    halved = [f"{key}.strategy={{factor: 3, resource: n_samples, min_resources: 100}}"]
    found = load(tmp_path, tree(), *drawn).methods["Gaussian SVM"]
    assert found.strategy is not None and found.strategy.n_candidates == 9
    assert found.space["gamma"] == Range(log_uniform=[1e-3, 1])
    assert yaml.safe_load(yaml.safe_dump(found.model_dump(mode="json", exclude_defaults=True))) == {
        "estimator": "gaussian_svm", "params": {"C": 1}, "search": {"gamma": {"log_uniform": [1e-3, 1]}},
        "strategy": {"n_candidates": 9},
    }  # fmt: skip
    more = [*drawn, f"{key}.strategy.n_candidates=10"]
    assert len({load(tmp_path, tree(), *lines).results for lines in ([], drawn, more, halved)}) == 4


def test_a_whole_number_parameter_can_be_the_resource_up_to_its_value(tmp_path: Path) -> None:
    ours = "methods={{ours: {{estimator: ldsvm, params: {{max_iter: {}}}, search: {{C: [1, 10]}}, strategy: {}}}}}"
    strategy = "{factor: 3, resource: max_iter, min_resources: 50}"
    assert load(tmp_path, tree(), ours.format(51, strategy)).methods["ours"].strategy is not None
    with pytest.raises(ConfigError, match=r"is 50; allowed: below 50, the max_iter of a full fit\.$"):
        load(tmp_path, tree(), ours.format(50, strategy))


def test_the_schema_knows_ranges_and_strategies() -> None:
    check = jsonschema.Draft202012Validator(models.MethodConfig.model_json_schema()).is_valid
    strategy = {"n_candidates": 9, "factor": 3, "resource": "max_iter", "min_resources": 5}
    given = {"estimator": "ldsvm", "search": {"C": [1], "gamma": {"log_uniform": [1e-3, 1]}}, "strategy": strategy}
    assert check(given)
    for wrong in ({"gamma": {"log": [1, 2]}}, {"gamma": {"uniform": [1, 2, 3]}}, {"gamma": []}, {"gamma": 1}):
        assert not check({**given, "search": wrong})
    for wrong in ({"n_candidate": 9}, {"n_candidates": 0}, {"factor": 1}, 3):
        assert not check({**given, "strategy": wrong})


def test_a_resource_leaves_something_for_the_whole_fit(tmp_path: Path) -> None:
    strategy = "methods.Gaussian SVM.strategy={factor: 2, resource: n_samples, min_resources: 600}"
    split = "split={{kind: stratified, train: {}, validation: 100, test: 100}}"
    assert load(tmp_path, tree(), strategy, split.format(601)).split.train == 601
    with pytest.raises(ConfigError, match=r"min_resources is 600; allowed: below 600, the n_samples of a full"):
        load(tmp_path, tree(), strategy, split.format(600))
    assert load(tmp_path, tree(), strategy).split.train == 0.5  # how many that are, only the data tell


def test_an_anchor_may_be_merged(tmp_path: Path) -> None:
    text = yaml.safe_dump({k: v for k, v in tree().items() if k != "methods"})
    text += "methods:\n  a: &a {estimator: linear_svm, params: {C: 1}}\n  b: {<<: *a, params: {C: 2}}\n"
    assert load(tmp_path, text).methods["b"] == models.MethodConfig(estimator="linear_svm", params={"C": 2})


def test_numbers_with_an_exponent_are_numbers(tmp_path: Path) -> None:
    found = load(tmp_path, tree(), "methods.Gaussian SVM.search.gamma=[1e-3, 2E+1, 1]")
    assert found.methods["Gaussian SVM"].search["gamma"] == [0.001, 20.0, 1]


def test_relative_folders_start_at_the_project_and_absolute_ones_stay(tmp_path: Path) -> None:
    found = load(tmp_path, tree(), f"paths.cache={tmp_path}")
    assert found.paths.runs == ROOT / "runs"
    assert found.paths.cache == tmp_path


def test_a_users_file_is_found_from_where_they_are_and_else_from_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("a,label\n1,0\n")
    case = {**tree(), "dataset": {"name": "mine", "path": "mine.csv"}}
    assert load(tmp_path, case).dataset.path == str(tmp_path / "mine.csv")
    assert load(tmp_path, case, "dataset.path=*.csv").dataset.path == str(tmp_path / "*.csv")
    assert load(tmp_path, case, "dataset.path=conf/base.yaml").dataset.path == str(ROOT / "conf" / "base.yaml")
    assert load(tmp_path, case, "dataset.path=none.csv").dataset.path == "none.csv"


def test_the_result_is_frozen(tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        load(tmp_path, tree()).seed = 1  # type: ignore[misc]


def test_another_configuration_has_another_folder_but_other_paths_do_not(tmp_path: Path) -> None:
    same, other = load(tmp_path, tree(), f"paths.runs={ROOT / 'runs'}"), load(tmp_path, tree(), "seed=1")
    assert load(tmp_path, tree()).results == same.results != other.results


CASES = {
    "seeds=1": ['"seeds"', 'did you mean "seed"', "allowed: name"],
    "dataset.mising=drop": ['"dataset.mising"', 'did you mean "missing"'],
    "problems=[{name: a, label: original}]": ['"problems.0.label', "labels"],
    "methods.Gaussian SVM.serach={}": ['"methods.Gaussian SVM.serach"', 'did you mean "search"'],
    "methods.Gaussian SVM.params.gama=1": ["methods.Gaussian SVM.params.gama", 'did you mean "gamma"'],
    "methods.Gaussian SVM.search.Cs=[1]": ["methods.Gaussian SVM.search.Cs", "allowed"],
    "methods.Gaussian SVM.search.C=[1]": ["search.C", "also in params"],
    "methods.Gaussian SVM.params.C=-1": ["Gaussian SVM", "'C'", "-1", "(0.0, inf]"],
    "methods.Gaussian SVM.search.gamma=[0.1, none]": ["'gamma'", "none"],
    "methods.Gaussian SVM.search.gamma=0.1": ['search.gamma"', "0.1", "a list of values, such as [0.1, 1, 10], or a"],
    "methods.Gaussian SVM.search.gamma=[]": ['"methods.Gaussian SVM.search.gamma"', "at least 1"],
    "methods.Gaussian SVM.estimator=gausian_svm": ['"gausian_svm"', 'did you mean "gaussian_svm"'],
    "methods.Gaussian SVM={estimator: pca_nn, params: {classify__n_neighbors: 0}}": ["'n_neighbors'", "0", "[1, inf)"],
    "methods={}": ['"methods"', "at least 1"],
    "dataset.name=digit": ['"digit"', 'did you mean "digits"'],
    "dataset.missing=guess": ['"dataset.missing"', "'guess'", "'refuse', 'drop' or 'impute'"],
    "dataset.label=y": ['"dataset"', "label with path only"],
    "dataset={name: a, path: a.csv, options: {n_classes: 2}}": ['"dataset"', "of the catalogue only, without path"],
    "dataset.classes=[1]": ['"dataset.classes"', "at least 2"],
    "dataset.classes=[yes, no]": ['"dataset.classes"', "need quotes"],
    "dataset.label=no": ['"dataset.label"', "need quotes"],
    "seed=!!bool x": ["command line", "YAML"],
    "methods.Gaussian SVM.search=best": ['"methods.Gaussian SVM.search"'],
    "methods.Gaussian SVM.search.gamma={log_uniform: [1e-3, 1]}": ["the range of gamma needs", "strategy.n_candidates"],
    "methods.Gaussian SVM.search.gamma={log_unifrm: [1e-3, 1]}": ["gamma.log_unifrm", 'did you mean "log_uniform"'],
    "methods.Gaussian SVM.search.gamma={uniform: [2, 1]}": ['search.gamma"', "[2, 1]", "[low, high] with low < high"],
    "methods.Gaussian SVM.search.gamma={log_uniform: [0, 1]}": ['search.gamma"', "[0, 1]", "with 0 < low < high"],
    "methods.Gaussian SVM.search.gamma={uniform: [1]}": ['search.gamma.uniform"', "[1]", "at least 2"],
    "methods.Gaussian SVM.search.gamma={uniform: [1, 2, 3]}": ['search.gamma.uniform"', "[1, 2, 3]", "at most 2"],
    "methods.Gaussian SVM.search.gamma={uniform: [0, .inf]}": ['search.gamma.uniform.1"', "inf", "finite"],
    "methods.Gaussian SVM.search.gamma={uniform_int: [0, 1.5]}": ['gamma.uniform_int.1"', "1.5", "integer"],
    "methods.Gaussian SVM.search.gamma={}": ['search.gamma"', "uniform, log_uniform, uniform_int, log_uniform_int"],
    "methods.Gaussian SVM.search.gamma={uniform: [0, 1], uniform_int: [0, 1]}": ['search.gamma"', "one of uniform"],
    "methods.a={estimator: nearest_neighbour, search: {n_neighbors: {uniform_int: [0, 5]}},"
    " strategy: {n_candidates: 2}}": [
        "methods.a", "'n_neighbors'", "[1, inf)", "0",
    ],
    "methods.Gaussian SVM.strategy={}": ['SVM.strategy"', "n_candidates, or factor, resource and min_resources"],
    "methods.Gaussian SVM.strategy=random": ['SVM.strategy"', "'random'"],
    "methods.Gaussian SVM.strategy={n_candidate: 3}": ['strategy.n_candidate"', 'did you mean "n_candidates"'],
    "methods.Gaussian SVM.strategy={n_candidates: 0}": ['strategy.n_candidates"', "0", "greater than or equal to 1"],
    "methods.Gaussian SVM.strategy={n_candidates: 3, factor: 3}": ['SVM.strategy"', "min_resources together"],
    "methods.Gaussian SVM.strategy={factor: 1, resource: n_samples, min_resources: 9}": ['factor"', "1", "equal to 2"],
    "methods.Gaussian SVM.strategy={factor: 2, resource: n_sample, min_resources: 9}": [
        "methods.Gaussian SVM.strategy.resource", '"n_sample"', "use one of n_samples", "did you mean n_samples?",
    ],
    "methods.Gaussian SVM.strategy={factor: 2, resource: max_iter, min_resources: 9}": [  # whose value -1 has no end
        "strategy.resource", '"max_iter"', "use one of n_samples, cache_size, degree",
    ],
    "methods.trees={estimator: hist_gradient_boosting, search: {max_iter: [9, 99]},"
    " strategy: {factor: 2, resource: max_iter, min_resources: 9}}": ["strategy.resource", '"max_iter"', "n_samples"],
    "methods.trees={estimator: hist_gradient_boosting, strategy: {factor: 2, resource: max_bins, min_resources: 1}}": [
        "methods.trees", "'max_bins'", "[2, 255]", "1",
    ],
    "limits.fit_s=0": ['"limits.fit_s"', "greater than 0"],
    "features=[{pcs: {n_components: 2}}]": ['"features"', "pcs", "pca"],
    "features=[{pca: {n_component: 2}}]": ['"features"', "n_component", "n_components"],
    "seed=-1": ['"seed"', "-1", "greater than or equal to 0"],
    "n_jobs=two": ['"n_jobs"', "'two'", "integer"],
    "judge.repeats=0": ['"judge.repeats"', "greater than or equal to 1"],
    "split.kind=mnist10": ['"split.kind"', "'mnist10'", "'balanced', 'grouped', 'time', 'cross_validation'."],
    "split.train=0": ['"split.train"', "greater than 0"],
    "split.test=oficial": ['"split.test"', "'oficial'", '"official"'],
    "split.repeats=0": ['"split.repeats"', "greater than or equal to 1"],
    "split={kind: time, train: 0.5, validation: 0.2, test: 0.3, repeats: 2}": ['"split"', "repeats 1"],
    "name=Two Words": ['"name"', "'Two Words'"],
    "metrics=error": ['"metrics"', "'error'", "allowed: a list of one or more"],
    "metrics=[]": ['"metrics"', "[]", "allowed: a list of one or more"],
    "production={model: m, gate: {metrics: {error: {threshold: 0}}}}": [
        '"production.gate.metrics"', '"error"', "production.gate.error_percent",
    ],
    "title=null": ['"title"', "None", "string"],
    "problems=[{name: a, labels: original}, {name: a, labels: parity}]": ['"a"', "twice"],
    "methods.gaussian-svm={estimator: linear_svm}": ['"Gaussian SVM"', "twice", "differ in their letters"],
    "problems=[{name: a, labels: roman}]": ['"problems.0.labels"', "'roman'", "'original' or 'parity'"],
    f"production={{model: m, score: {{input: a.csv, output: b.csv, rows: {10**30}}}}}": [
        '"production.score.rows"', str(10**30), "less than or equal to 10000000",
    ],
    "seed": ["command line", '"seed"', "key=value"],
    "seed.more=1": ["command line", '"seed.more"', "single value"],
    "seed=[1": ["command line", '"[1"', "YAML"],
    "dataset.decimal=@": ["command line", "text in quotes: \"dataset.decimal='@'\"."],
}  # fmt: skip


@pytest.mark.parametrize("override", CASES, ids=str)
def test_a_wrong_entry_is_one_sentence_with_name_value_and_what_is_allowed(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, tree(), override)
    message = str(caught.value)
    assert "\n" not in message
    for part in CASES[override]:
        assert part in message


@pytest.mark.parametrize(("mark", "marks"), [(",", "[NA, ?]"), ("','", "[NA, '?']"), (".", "[NA, '?']")])
def test_a_decimal_comma_and_a_question_mark_need_no_quotes(tmp_path: Path, mark: str, marks: str) -> None:
    given = f"dataset.decimal={mark}", f"dataset.missing_values={marks}"
    found = load(tmp_path, tree(), "dataset.path=a.csv", "dataset.label=y", *given).dataset
    assert found.decimal == mark.strip("'") and found.missing_values == ("NA", "?")


BROKEN = {
    "list": ("- 1\n", "mapping"),
    "twice": ("name: a\nname: b\n", '"name" is given twice'),
    "not yaml": ("name: [\n", "not valid YAML"),
    "missing": ("name: a\n", '"dataset" is missing'),
    "not text": ("\x00", "not valid YAML"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_one_sentence(tmp_path: Path, case: str) -> None:
    content, part = BROKEN[case]
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, content)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def laughs(levels: int) -> str:
    """Return a list whose aliases, written out, have 9 to the power of `levels` entries."""
    return "[&a0 [x], " + ", ".join(f"&a{i + 1} [{', '.join([f'*a{i}'] * 9)}]" for i in range(levels)) + "]"


@pytest.mark.parametrize("key", ["seed", "title", "methods.Gaussian SVM.params.C", "dataset.classes"])
def test_a_short_text_whose_aliases_mean_millions_is_refused(tmp_path: Path, key: str) -> None:
    for value in (laughs(7), "&a [*a]", "&a {b: *a}"):  # the first of 9**7 entries
        with pytest.raises(ConfigError, match=r"allowed: a YAML value; (its aliases repeat|an alias stands)") as caught:
            load(tmp_path, tree(), f"{key}={value}")
        assert len(str(caught.value)) < 400
    with pytest.raises(ConfigError, match="aliases repeat more than"):
        load(tmp_path, yaml.safe_dump({k: v for k, v in tree().items() if k != key}) + f"more: {laughs(7)}\n")
    with pytest.raises(ConfigError, match="aliases repeat more than"):  # one long word, often
        load(tmp_path, tree(), f"{key}=[&a {'x' * 1000}{', *a' * 1000}]")


@pytest.mark.parametrize("value", ["0x" + "f" * 9000, laughs(3), "[" * 20 + "]" * 20, "x" * 9000, "{a" * 900])
def test_a_message_quotes_the_beginning_of_a_long_value(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"seed.* has value") as caught:
        load(tmp_path, tree(), f"seed={value}")
    assert len(str(caught.value)) < 300


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'no file "conf/digit.yaml"; allowed'):
        load_config("conf/digit.yaml", root=ROOT)


def fields(model: type[BaseModel]) -> list[str]:
    return list(model.model_fields)


@pytest.mark.slow
def test_every_field_is_read_by_something() -> None:
    sources = "\n".join(
        p.read_text("utf-8")
        for d in ("ldsvm/experiment", "ldsvm/tracking", "ldsvm/production", "ldsvm/report", "flows")
        for p in (ROOT / d).rglob("*.py")
    )
    sections = [m for m in vars(models).values() if isinstance(m, type) and issubclass(m, BaseModel)]
    unread = [f"{m.__name__}.{f}" for m in sections for f in fields(m) if not re.search(rf"\w\.{f}\b(?!\()", sources)]
    assert len(sections) >= 12
    assert unread == []
