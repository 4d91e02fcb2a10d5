"""The catalogue says what is true: counts, sizes and checksums against the data themselves or simple arithmetic."""

from __future__ import annotations

import gzip
import hashlib
import re
from importlib import resources
from pathlib import Path

import pytest

from ldsvm.datasets import DataError, catalog, load
from ldsvm.datasets.catalog import catalogue
from ldsvm.datasets.loading import GENERATED, SOURCES
from ldsvm.datasets.words import one_of

README = Path(__file__).resolve().parents[2] / "data" / "README.md"


def test_every_name_has_a_module_and_every_module_an_entry() -> None:
    assert sorted(catalogue()) == sorted(SOURCES)
    assert [name for name, entry in catalogue().items() if "generated" in entry.sources] == list(GENERATED)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_an_entry_can_be_cited_and_proved(name: str) -> None:
    entry = catalogue()[name]
    assert entry.name == name and re.search(r"\(\d{4}\)", entry.citation) and entry.licence and entry.title
    assert all(sentence.endswith(".") for sentence in entry.sources.values())
    # Only generated data have no promise, since their content depends on the options.
    assert bool(re.fullmatch("[0-9a-f]{64}", entry.sha256)) == (name not in GENERATED)


@pytest.mark.parametrize("name", ["digits", "spirals"])
def test_counts_are_those_of_the_data(name: str, tmp_path: Path) -> None:
    entry, data = catalogue()[name], load(name, cache_dir=tmp_path)
    assert data.X.shape == (entry.rows, entry.features) and len(set(data.y.tolist())) == entry.classes
    assert data.test is None and entry.test_rows == 0


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_sizes_of_images_follow_from_the_shapes_of_their_files(name: str) -> None:
    entry = catalogue()[name]
    for file in entry.files:
        count = 1
        for size in file.shape:
            count *= size
        assert file.size == 4 + 4 * len(file.shape) + count
    images, labels, test_images, test_labels = (file.shape for file in entry.files)
    assert images[0] == labels[0] == entry.rows and test_images[0] == test_labels[0] == entry.test_rows
    assert images[1] * images[2] == entry.features
    assert sum(file.size for file in entry.files) == entry.size


def test_digits_file_has_the_checksum_of_the_catalogue() -> None:
    entry = catalogue()["digits"]
    (file,) = entry.files
    data = gzip.decompress((resources.files("sklearn.datasets.data") / f"{file.name}.gz").read_bytes())
    assert (len(data), hashlib.sha256(data).hexdigest()) == (file.size, file.sha256)
    assert entry.size == file.size


def test_the_readme_has_the_counts_of_the_catalogue() -> None:
    rows = [row for row in README.read_text("utf-8").splitlines() if row.startswith("| `") and "×" in row]
    table = {row.split("|")[1].strip(" `"): row for row in rows}
    assert sorted(table) == sorted(catalogue())
    for name, entry in catalogue().items():
        counts = f"{entry.rows:,}" + (f" + {entry.test_rows:,} test" if entry.test_rows else "")
        assert f"{counts} × {entry.features or 'text'}" in table[name]
        assert f"| {entry.classes} |" in table[name] and f"| {entry.licence} |" in table[name]


def test_a_missing_catalogue_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "PLACES", (tmp_path / "catalog.yaml",))
    with pytest.raises(DataError, match=r"The catalogue is missing: expected one of .*catalog\.yaml\.$"):
        catalogue.__wrapped__()  # past the memory of earlier calls


def test_a_wrong_name_gets_the_nearest_and_all_valid_ones() -> None:
    assert one_of("newsgroup", SOURCES).endswith("(did you mean newsgroups?).")
    assert one_of("zzz", ["a", "b"]) == "use one of a, b."
