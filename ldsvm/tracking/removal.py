"""Removal of models and their files from the store."""

from __future__ import annotations

from ldsvm.tracking.store import Guarded
from ldsvm.tracking.versions import logged_model


def remove(client: Guarded, uri: str) -> None:
    """Remove the files of a model, and the model from its run's page; what is gone already is not an error.

    uri: as `Run.model` returned it.
    """
    from mlflow import MlflowException
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    number = logged_model(uri)
    try:
        place = uri if number is None else client.get_logged_model(number).artifact_location
        get_artifact_repository(place).delete_artifacts()  # type: ignore[no-untyped-call]
        if number is not None:
            client.delete_logged_model(number)
    except (MlflowException, FileNotFoundError) as error:
        if getattr(error, "error_code", "RESOURCE_DOES_NOT_EXIST") != "RESOURCE_DOES_NOT_EXIST":
            raise
