"""The production model: its versions in MLflow's registry, and their aliases.

`champion` is the version in use, `previous` the one before it, for a rollback, and `shadow` a challenger that scores
the same rows as the champion before it may be promoted, see `rollout`. Aliases move under a lock in the folder of
results, after a check that the champion has not changed: of two retrainings that were judged against the same champion,
only one is promoted. MLflow moves one alias at a time, so the intended move is written to a tag first; after a kill,
the next process completes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from ldsvm.atomic import alone
from ldsvm.experiment.storing import loads
from ldsvm.tracking.client import Run, Tracker, TrackingFailed, download
from ldsvm.tracking.served import MODEL
from ldsvm.tracking.server import redacted
from ldsvm.tracking.versions import create_version

CHAMPION, PREVIOUS, SHADOW = "champion", "previous", "shadow"
FACTS = "production.json"  # of the run that registered a version
AGAINST = "ldsvm.challenged_version"  # tag of a version: the number of the champion that it challenged
EARLIER = "ldsvm.champion"  # the same tag in registries of earlier releases
NONE = "0"  # in place of a version's number
LOOKS = "ldsvm.looks"  # tag of the model, with a champion's number at the end: how many have challenged it
ACKNOWLEDGED = "ldsvm.acknowledged"  # tag of the model: digest of the data that a person has acknowledged
MOVE = "ldsvm.move"  # tag of the model while its aliases move: the numbers of champion and previous
TIMELINE = "ldsvm.timeline"  # tag of the model: the run whose metrics are its life, point by point
REMOVED = "ldsvm.removed"  # tag of the model, with the number of a version that is removed at the end: see `retention`
MOST = 5000  # characters of a description that MLflow's databases hold; the run has all of it


class RegistryFailed(RuntimeError):
    """The registry lacks what is needed; the message is one sentence."""


@dataclass(frozen=True)
class Version:
    """One version of a registered model. run_id: the run that made it. source: where MLflow keeps its files."""

    name: str
    number: int
    run_id: str
    source: str

    def __str__(self) -> str:
        return f"{self.name} version {self.number}"


@contextmanager
def one_at_a_time(runs: Path, model: str, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Let one retraining of a production model at a time work in the folder `runs`, however it was started.

    The next one waits before it looks for new rows, so it sees the outcome of this one and does not judge the same rows
    again. on_wait: called before it waits.
    """
    folder = runs / "registry" / model
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(folder, wait=False))
        except TimeoutError:
            on_wait()
            stack.enter_context(alone(folder))
        yield


class Registry:
    """The versions of the model `name`. Methods raise TrackingFailed where the store is the reason."""

    def __init__(self, tracker: Tracker, name: str) -> None:
        self.tracker, self.client, self.name = tracker, tracker.client, name
        self._written: object = None

    def get(self, alias: str = CHAMPION) -> Version | None:
        """Return the version that has an alias, None when none has it."""
        if MOVE in self._model().tags:
            with self.alone():
                pass
        return self._get(alias)

    def moved(self) -> bool | None:
        """Return whether an alias may have moved since this was asked last; None if only `get` can find out.

        Where the registry is a file of this computer this costs next to nothing: nobody has written to it meanwhile.
        """
        written = getattr(self.client.file, "written", None)  # a server has no such method
        before, self._written = self._written, written and written()
        return None if self._written is None else before != self._written

    def require(self, alias: str = CHAMPION) -> Version:
        """Return the version that has an alias; raise RegistryFailed when none has it."""
        found = self.get(alias)
        if found is None:
            names = sorted(model.name for model in self.client.search_registered_models())
            known = f"registered models: {', '.join(names)}" if names else "no model is registered"
            rule = "run python -m flows retrain" if alias == CHAMPION else "the second promotion sets it"
            raise RegistryFailed(f"{self.name} has no {alias} yet ({known}); {rule}.")
        return found

    def challengers(self, champion: Version | None) -> list[Version]:
        """Return the versions that challenged a champion, oldest first, also those that were removed.

        champion: None for those made when there was no champion.
        """
        number = _number(champion)
        there = [self.version(one) for one, against in self.versions().items() if against == number]
        gone = [said for said in self.removed().values() if said["against"] == number]
        found = {said["number"]: Version(self.name, said["number"], said["run"], "") for said in gone}
        found |= {one.number: one for one in there}
        return [found[one] for one in sorted(found)]

    def versions(self) -> dict[int, str]:
        """Return the number of each version that is there, and that of the champion that it challenged.

        It is "0" where there was none, and "" where somebody else has registered the version.
        """
        found = self.client.search_model_versions(f"name = '{self.name}'")
        against = {int(one.version): one.tags.get(AGAINST, one.tags.get(EARLIER, "")) for one in found}
        return dict(sorted(against.items()))

    def aliased(self) -> set[int]:
        """Return the numbers of all versions that have an alias, of ours or of anybody."""
        return {int(number) for number in self._model().aliases.values()}

    def removed(self) -> dict[int, dict[str, Any]]:
        """Return what is remembered of each version that was removed, by its number: see `remember_removed`."""
        tags = self._model().tags.items()
        return {int(key.rpartition(".")[2]): json.loads(said) for key, said in tags if key.startswith(f"{REMOVED}.")}

    def remember_removed(self, version: Version, against: str, done: bool) -> None:
        """Remember a version by its run and the number of its champion, so that it still counts as a challenger.

        done: whether its files are gone; until then their place is remembered too, for what goes on after a kill.
        """
        said = {"number": version.number, "run": version.run_id, "against": against}
        said |= {} if done else {"source": version.source}
        self.client.set_registered_model_tag(self.name, f"{REMOVED}.{version.number}", json.dumps(said))

    def challenger_facts(self, champion: Version | None) -> list[dict[str, Any]]:
        """Return the facts of every version that challenged this champion and had its verdict, oldest first.

        A version that was promoted and rolled back counts: on the same rows it would only be promoted again. Versions
        whose run or facts are gone are left out.
        """
        found = []
        for version in self.challengers(champion):
            with suppress(RegistryFailed):  # without its facts the same challenger is trained again, which does no harm
                if self._has_verdict(version):
                    found.append(self.facts(version))
        return found

    def forget_removed(self, number: int) -> None:
        """Take back that a version is to be removed."""
        self.client.delete_registered_model_tag(self.name, f"{REMOVED}.{number}")

    def next_number(self, champion: Version | None) -> int:
        """Return the number of the next challenger of this champion, from 1.

        No number is given twice, even if two are judged at once or versions were deleted.
        """
        with self.alone():
            self._create_if_missing()
            key = f"{LOOKS}.{_number(champion)}"
            number = 1 + max(int(self._model().tags.get(key, 0)), len(self.challengers(champion)))
            self.client.set_registered_model_tag(self.name, key, str(number))
        return number

    def acknowledged(self) -> str | None:
        """Return the digest of the data that a person has acknowledged last."""
        found: str | None = self._model().tags.get(ACKNOWLEDGED)
        return found

    def acknowledge(self, digest: str) -> None:
        """Remember the digest of data that a person has acknowledged."""
        self.client.set_registered_model_tag(self.name, ACKNOWLEDGED, digest)

    def timeline(self) -> Run:
        """Return the run whose metrics show the model over the dates, made when there is none."""
        known = self._model().tags.get(TIMELINE)
        if known is not None and self.tracker.knows(known):
            return self.tracker.get(known)
        with self.alone():
            self._create_if_missing()
        with self.tracker.run(f"timeline · {self.name}", kind="timeline") as run:
            run.describe(note=f"The metrics of this run show {self.name} in production, with a point for each event.")
        self.client.set_registered_model_tag(self.name, TIMELINE, run.id)
        return run

    def version(self, number: int) -> Version:
        """Return one version by its number."""
        found = self.client.get_model_version(self.name, str(number))
        return Version(self.name, int(found.version), found.run_id, found.source)

    def register(self, run: Run, source: str, facts: Mapping[str, Any], against: Version | None = None) -> Version:
        """Add a version, without an alias. source: what `Run.model` returned. against: the champion it challenged."""
        run.text(FACTS, json.dumps(facts))
        with self.alone():
            self._create_if_missing()
        made = create_version(self.client, self.name, source, run.id, {AGAINST: _number(against)})
        return Version(self.name, int(made.version), run.id, made.source)

    def describe(self, version: Version, card: str, **tags: str) -> None:
        """Set the Markdown text that a version's page shows, once it has been promoted or refused.

        tags: facts such as the verdict, see `say`.
        """
        self.client.update_model_version(self.name, str(version.number), card[:MOST])
        self.say(version, **tags)

    def say(self, version: Version, **tags: str) -> None:
        """Set facts that a version's page and the list of versions show; "ldsvm." comes before each key."""
        for key, value in tags.items():
            self.client.set_model_version_tag(self.name, str(version.number), f"ldsvm.{key}", value)

    def tags(self, version: Version) -> dict[str, str]:
        """Return the facts that `say` has set, and others."""
        return dict(self.client.get_model_version(self.name, str(version.number)).tags)

    def promote(self, version: Version, instead_of: Version | None, *, alias: str | None = None) -> bool:
        """Make a version the champion if `instead_of` still is; return whether it was promoted.

        alias: which the version must still have. Another version that was in shadow is so no more: it has challenged a
        champion that is no longer in use.
        """
        with self.alone():
            now, shadow = self._get(CHAMPION), self._get(SHADOW)
            if _number(now) != _number(instead_of) or (alias and _number(self._get(alias)) != _number(version)):
                return False
            self._move_to(version, now)
            if shadow is not None and shadow != version:
                self.client.delete_registered_model_alias(self.name, SHADOW)
                self.say(shadow, verdict="replaced in shadow")
        return True

    def put_in_shadow(self, version: Version, beside: Version) -> bool:
        """Let a version answer beside the champion if that is still `beside`; return whether it does.

        It takes the place of the one that was in shadow before.
        """
        with self.alone():
            if _number(self._get(CHAMPION)) != _number(beside):
                return False
            before = self._get(SHADOW)
            self.client.set_registered_model_alias(self.name, SHADOW, str(version.number))
            if before is not None and before != version:
                self.say(before, verdict="replaced in shadow")
        return True

    def rollback(self) -> tuple[Version, Version | None]:
        """Swap the champion, unless it was removed, and the version before it; return the new and the old one."""
        with self.alone():
            now, before = self._get(CHAMPION), self.require(PREVIOUS)
            if now == before:
                raise RegistryFailed(f"{now} is both champion and previous, so there is no version to go back to.")
            self._move_to(before, now)
        return before, now

    def facts(self, version: Version) -> dict[str, Any]:
        """Return what was registered with a version."""
        with TemporaryDirectory() as folder:
            try:
                file = self.client.download_artifacts(version.run_id, FACTS, folder)
                return dict(json.loads(Path(file).read_text("utf-8")))
            except TrackingFailed:
                raise
            except Exception as error:  # MLflow's own, for a file that is not there
                raise RegistryFailed(
                    f"{version} has no readable {FACTS} ({redacted(str(error))}); go back with python -m flows "
                    "rollback, or choose another production.model."
                ) from error

    def file(self, version: Version, folder: Path) -> Path:
        """Copy the files of a version to a folder and return that of its model."""
        return download(version.source, str(folder)) / MODEL

    def model(self, version: Version) -> Any:
        """Return the fitted pipeline of a version, from raw rows to labels.

        Only types of ours, NumPy, SciPy and scikit-learn are loaded, whatever the file asks for.
        """
        with TemporaryDirectory() as folder:
            try:
                return loads(self.file(version, Path(folder)).read_bytes())
            except Exception as error:
                raise RegistryFailed(
                    f"{version} cannot be loaded ({redacted(str(error))}); go back with python -m flows rollback, or "
                    "choose another production.model."
                ) from error

    def _has_verdict(self, version: Version) -> bool:
        try:
            return bool(self.client.get_run(version.run_id).info.status == "FINISHED")
        except TrackingFailed:
            raise
        except Exception as error:  # MLflow's own, for a run that was removed
            raise RegistryFailed(f"The run of {version} is missing ({redacted(str(error))}).") from error

    def _create_if_missing(self) -> None:
        if not self.client.search_registered_models(f"name = '{self.name}'"):
            about = (
                f"Versions made by retraining. Aliases: {CHAMPION}, the version in use; {PREVIOUS}, the one before it; "
                f"{SHADOW}, a challenger on trial."
            )
            self.client.create_registered_model(self.name, description=about)

    def _move_to(self, version: Version, instead_of: Version | None) -> None:
        self.client.set_registered_model_tag(self.name, MOVE, f"{_number(version)} {_number(instead_of)}")
        self._finish()

    def _finish(self) -> None:
        """Finish the move of the aliases that the tag says, if there is one; no version ever has two of ours."""
        if (meant := self._model().tags.get(MOVE)) is None:
            return
        champion, previous = meant.split()
        aliases, there = self._model().aliases, self.versions()
        for alias in (PREVIOUS, SHADOW):
            if str(aliases.get(alias)) == champion:  # some stores return a number, others a text
                self.client.delete_registered_model_alias(self.name, alias)
        for alias, number in ((CHAMPION, champion), (PREVIOUS, previous)):
            if int(champion) in there and int(number) in there:  # else it was removed after a kill
                self.client.set_registered_model_alias(self.name, alias, number)
        self.client.delete_registered_model_tag(self.name, MOVE)

    def _get(self, alias: str) -> Version | None:
        number = self._model().aliases.get(alias)
        return None if number is None else self.version(int(number))

    def _model(self) -> Any:
        """Return the registered model; one without tags and aliases when there is none yet."""
        found = self.client.search_registered_models(f"name = '{self.name}'")
        return found[0] if found else SimpleNamespace(tags={}, aliases={})

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one process at a time move aliases or remove versions; a move that a kill has left is finished first."""
        with alone(self.tracker.runs / "registry"):
            self._finish()
            yield


def _number(version: Version | None) -> str:
    return NONE if version is None else str(version.number)
