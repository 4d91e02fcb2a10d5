"""MLflow's pages and API on loopback, in one process: `python -m ldsvm.tracking.ui RUNS PORT`.

The command `mlflow server` would import all of MLflow twice, once for itself and once in the server that it starts.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ldsvm.tracking.client import Tracker
from ldsvm.tracking.server import VARIABLE
from ldsvm.tracking.store import store_uri


def serve(runs: Path, port: int) -> None:
    """Serve the tracking store of the folder `runs`, created if it is absent, until a signal ends the process.

    It is that store even where MLFLOW_TRACKING_URI names a server for everything else.
    """
    os.environ.pop(VARIABLE, None)
    Tracker(runs, "Default").client.search_experiments(max_results=1)  # creates the store, or says why it cannot
    import uvicorn
    from mlflow.server import constants

    # What `mlflow server` tells the server that it starts; artifacts that browsers send lie beside those of runs.
    os.environ |= {
        constants.BACKEND_STORE_URI_ENV_VAR: store_uri(runs),
        constants.REGISTRY_STORE_URI_ENV_VAR: store_uri(runs),
        constants.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/",
        constants.SERVE_ARTIFACTS_ENV_VAR: "true",
        constants.ARTIFACTS_DESTINATION_ENV_VAR: (runs.resolve() / "artifacts").as_uri(),
        "_MLFLOW_SGI_NAME": "uvicorn",
    }
    uvicorn.run("mlflow.server.fastapi_app:app", host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
