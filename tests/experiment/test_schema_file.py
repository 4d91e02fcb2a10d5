"""`schema.yaml`: what a training saw, kept where people have edited it, and one sentence for what cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldsvm.datasets import DataError
from ldsvm.datasets.table_schema import Allowed
from ldsvm.experiment.schema_file import edited, write

SEEN = [
    Allowed("id", "identifier", "every row has a value of its own"),
    Allowed("age", "number", least=18, largest=50.5, gaps=0.0),
    Allowed("town", "category", values=("Bonn", "yes", "7"), gaps=0.25),
    Allowed("day", "date", least="2024-03-01", gaps=0.25),
]
ROLES = {"age": "number", "town": "category", "day": "date"}


def test_what_nobody_edited_is_written_anew_and_what_somebody_did_is_kept_and_counts(tmp_path: Path) -> None:
    file = tmp_path / "schema.yaml"
    assert edited(file, ROLES) is None
    write(SEEN[:2], file)
    write(SEEN, file)
    assert edited(file, ROLES) is None
    text = file.read_text()
    file.write_text(text.replace("18", "16"))
    found = edited(file, ROLES)
    assert found == (Allowed("id", "identifier"), Allowed("age", "number", least=16, largest=50.5, gaps=0.0), *SEEN[2:])
    write(SEEN, file)
    assert edited(file, ROLES) == found
    file.write_text(text)  # taken back
    assert edited(file, ROLES) is None


def test_keys_that_are_removed_allow_all_and_dates_and_numbers_need_no_quotes(tmp_path: Path) -> None:
    file = tmp_path / "schema.yaml"
    file.write_text("age: {}\nday: {largest: 2030-12-31}\ntown: {values: [7, Ulm]}\n")
    assert edited(file, ROLES) == (
        Allowed("age", "number"), Allowed("day", "date", largest="2030-12-31"),
        Allowed("town", "category", values=("7", "Ulm")),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age: [", "is not valid YAML"),
        ("- age", r"holds \['age'\]; allowed: keys of each column"),
        ("age: 3", "age is 3; allowed: the keys role, reason, least, largest, values, gaps"),
        ("age: {lest: 3}", r"age has the key 'lest'; use one of .* \(did you mean least\?\)"),
        ("age: {role: category}", "age has the role 'category', but the model was trained with number"),
        ("age: {least: low}", "age has least: 'low'; allowed: a number"),
        ("age: {least: yes}", "age has least: True; allowed: a number"),
        ("day: {least: soon}", "day has least: 'soon'; allowed: a date such as 2024-12-31"),
        ("age: {gaps: 3}", "age has gaps: 3; allowed: a share from 0 to 1"),
        ("town: {values: [yes, no]}", r"town has values: \[True, False\]; allowed: a list of texts, in quotes"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "schema.yaml").write_text(text)
    with pytest.raises(DataError, match=message):
        edited(tmp_path / "schema.yaml", ROLES)
