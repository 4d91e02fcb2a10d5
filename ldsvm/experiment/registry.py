"""The models in use and those before them: versions of one name in MLflow's registry, and who has which alias.

`champion` is the version in use and `previous` the one before it, to go back to. An alias moves at once or not at all.
What moves one holds a lock in the folder of results and looks again who the champion is, so that of two retrainings
that judged against the same champion only one is promoted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ldsvm.datasets.atomic import alone
from ldsvm.experiment.storing import loads
from ldsvm.experiment.tracking import Run, Tracker, TrackingFailed, download

CHAMPION, PREVIOUS = "champion", "previous"
FACTS = "production.json"  # of the run that registered a version
MODEL = "model.skops"
MOST = 5000  # characters of a description that MLflow's databases hold; the run has all of it


class RegistryFailed(RuntimeError):
    """The registry does not hold what is asked for; the message is one sentence."""


@dataclass(frozen=True)
class Version:
    """One version of a registered model. run_id: the run that made it. source: where MLflow keeps its files."""

    name: str
    number: int
    run_id: str
    source: str

    def __str__(self) -> str:
        return f"{self.name} version {self.number}"


class Registry:
    """The versions of the model `name`. Methods raise TrackingFailed where the store is the reason."""

    def __init__(self, tracker: Tracker, name: str) -> None:
        self.tracker, self.client, self.name = tracker, tracker.client, name

    def get(self, alias: str = CHAMPION) -> Version | None:
        """Return the version that has an alias, None when none has it."""
        found = self.client.search_registered_models(f"name = '{self.name}'")
        number = found[0].aliases.get(alias) if found else None
        return None if number is None else self.version(int(number))

    def needed(self, alias: str = CHAMPION) -> Version:
        """Return the version that has an alias; raise RegistryFailed when none has it."""
        found = self.get(alias)
        if found is None:
            names = sorted(model.name for model in self.client.search_registered_models())
            known = f"registered are {', '.join(names)}" if names else "no model is registered"
            raise RegistryFailed(f"No version of {self.name} is {alias} ({known}); allowed: after a retraining.")
        return found

    def refused(self) -> Version | None:
        """Return the version that was registered last, unless it is the champion or its run has had no verdict."""
        found = self.client.search_model_versions(f"name = '{self.name}'")
        if not found or (last := self.version(max(int(one.version) for one in found))) == self.get():
            return None
        return last if self.client.get_run(last.run_id).info.status == "FINISHED" else None

    def version(self, number: int) -> Version:
        """Return one version by its number."""
        found = self.client.get_model_version(self.name, str(number))
        return Version(self.name, int(found.version), found.run_id, found.source)

    def register(self, run: Run, source: str, facts: Mapping[str, Any]) -> Version:
        """Add a version, without an alias. source: what `Run.model` returned."""
        run.text(FACTS, json.dumps(facts))
        with self._alone():
            if not self.client.search_registered_models(f"name = '{self.name}'"):
                self.client.create_registered_model(self.name)
        made = self.client.create_model_version(self.name, source, run_id=run.id)
        return Version(self.name, int(made.version), run.id, made.source)

    def describe(self, version: Version, card: str) -> None:
        """Set the Markdown text that a version's page shows, once it is known what becomes of it."""
        self.client.update_model_version(self.name, str(version.number), card[:MOST])

    def promote(self, version: Version, instead_of: Version | None) -> bool:
        """Make a version the champion unless somebody else than `instead_of` is by now; return whether it is."""
        with self._alone():
            now = self.get()
            if (now and now.number) != (instead_of and instead_of.number):
                return False
            self._crown(version, now)
        return True

    def rollback(self) -> tuple[Version, Version]:
        """Let the champion and the version before it change places; return the new champion and the old one."""
        with self._alone():
            now, before = self.needed(), self.needed(PREVIOUS)
            if now.number == before.number:
                raise RegistryFailed(f"{now} is both champion and previous; there is nothing to go back to.")
            self._crown(before, now)
        return before, now

    def facts(self, version: Version) -> dict[str, Any]:
        """Return what was registered with a version."""
        with TemporaryDirectory() as folder:
            try:
                file = self.client.download_artifacts(version.run_id, FACTS, folder)
                found: dict[str, Any] = json.loads(Path(file).read_text("utf-8"))
            except TrackingFailed:
                raise
            except Exception as error:  # MLflow's own, for a file that is not there
                raise RegistryFailed(
                    f"{version} has no readable {FACTS} ({error}); allowed: python -m flows rollback, or a new start."
                ) from error
        return found

    def model(self, version: Version) -> Any:
        """Return the fitted pipeline of a version, from the data as they came to labels.

        Only types of ours, NumPy's, SciPy's and scikit-learn's are made, whatever the file asks for.
        """
        with TemporaryDirectory() as folder:
            try:
                return loads((download(version.source, folder) / MODEL).read_bytes())
            except Exception as error:
                raise RegistryFailed(
                    f"{version} cannot be loaded ({error}); allowed: python -m flows rollback, or a new start."
                ) from error

    def _crown(self, version: Version, instead_of: Version | None) -> None:
        if instead_of is not None:
            self.client.set_registered_model_alias(self.name, PREVIOUS, str(instead_of.number))
        self.client.set_registered_model_alias(self.name, CHAMPION, str(version.number))

    def _alone(self) -> AbstractContextManager[None]:
        return alone(self.tracker.runs / "registry")
