"""The JSON schema of experiment files, for editors that check and complete YAML."""

from __future__ import annotations

import json


def schema() -> str:
    """Return the schema of an experiment file as indented JSON.

    It describes a file after `conf/base.yaml` was merged under it, so a file may leave out what that one gives.

    >>> '"methods"' in schema()
    True
    """
    from ldsvm.experiment.config.schema import Config

    return json.dumps(Config.model_json_schema(), indent=2, ensure_ascii=False)
