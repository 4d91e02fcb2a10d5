"""Where MLflow's page shows the methods of an experiment, and what their table and charts show there."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

KIND, PIPELINE = "ldsvm.kind", "ldsvm.pipeline"
SHARED = "mlflow.sharedViewState."
EVERY = "methods"  # the view without a pipeline
# A tag by which pages open an experiment on its runs and not on traces of language models. Those of MLflow 3.17 go by
# the switch in their corner instead, or by the address: see `link`.
MODELS = ("mlflow.experimentKind", "custom_model_development")
NAME = "attributes.`Run Name`"
COLUMNS = {  # metrics in the order of the table; pixels, so that a heading fits
    "error_percent": 120,
    "n_basis": 80,
    "predict_us": 95,
    "train_s": 75,
    "search_s": 80,
    "valid_error_percent": 145,
    "error_low_percent": 140,
    "error_high_percent": 140,
    "error_std_percent": 140,
    "parameter_bytes": 130,
}
SECTIONS = ("Model metrics", "iteration")  # of the charts; the second has what Run.log writes per iteration
TRADES = ("n_basis", "predict_us")  # what a small error costs: each has a chart beside the ones of every metric


def view(pipeline: str | None) -> tuple[str, str]:
    """Return key and value of the experiment's tag that makes the page of `link`.

    MLflow hides the columns of metrics, and its address can carry filter and order but no columns. It can name a view
    that was shared, though, which holds all of them; such a view is a tag of the experiment.
    """
    columns = {f"metrics.`{name}`": width for name, width in COLUMNS.items()}
    only = "" if pipeline is None else f" and tags.`{PIPELINE}` = '{pipeline}'"
    state = {
        "searchFilter": f"tags.`{KIND}` = 'method'{only}",
        "orderByKey": "metrics.`error_percent`",
        "orderByAsc": True,
        "selectedColumns": list(columns),
        "columnOrder": [NAME, *columns],
        "columnWidths": {NAME: 280, **columns},
        "runsHiddenMode": "FIRST_20_RUNS",  # charts have 10 otherwise
        "isAccordionReordered": True,
        "compareRunSections": [{"uuid": name, "name": name, "display": True, "isReordered": True} for name in SECTIONS],
        "compareRunCharts": [_chart(name) for name in TRADES],
    }
    return f"{SHARED}{pipeline or EVERY}", json.dumps(state)


def _chart(metric: str) -> dict[str, Any]:
    """Return a chart of the test error against a metric, as MLflow's page writes it down."""
    return {
        "type": "SCATTER",
        "uuid": metric,
        "metricSectionId": SECTIONS[0],
        "runsCountToCompare": 20,
        "xaxis": {"key": metric, "type": "METRIC"},
        "yaxis": {"key": "error_percent", "type": "METRIC"},
    }


def link(experiment_id: str, port: int, pipeline: str | None = None) -> str:
    """Return the address of an experiment's table: methods only, smallest error first, with the columns that count.

    pipeline: the one whose methods are shown, which a Tracker must have been made for; without it those of all.
    The bare address opens on a view for language models.
    """
    query = urlencode({"workflowType": "machine_learning", "viewStateShareKey": pipeline or EVERY})
    return f"http://127.0.0.1:{port}/#/experiments/{experiment_id}/runs?{query}"
