"""Send prefect.yaml and conf/automations.yaml to a Prefect server: `python -m flows.deploy`, for containers.

`make up` does the same while its servers start. Needs PREFECT_API_URL and LDSVM_RUNS.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

from flows import automations, deployments


def main() -> int:
    """Send what the server lacks or has otherwise, and return the exit code."""
    from ldsvm.experiment.config.yaml_merge import ConfigError

    api, runs = os.environ["PREFECT_API_URL"], Path(os.environ["LDSVM_RUNS"])
    log, memory = runs / "logs" / "service-deploy.log", runs / "prefect" / "deployed.json"
    try:
        wanted, reactions = deployments.wanted_deployments(), automations.wanted_automations()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    for file in (log, memory):
        file.parent.mkdir(parents=True, exist_ok=True)
    _make_pool(api)
    if not deployments.Deploying(api, wanted, memory, log).finish():
        print(f"{log.read_text('utf-8', errors='replace')}\nprefect.yaml could not be deployed", file=sys.stderr)
        return 1
    for sentence in automations.deploy(api, reactions):
        print(sentence, file=sys.stderr)
    return 0


def _make_pool(api: str) -> None:
    """Make the pool of the worker, which else would only make it when it starts."""
    try:
        with urllib.request.urlopen(f"{api}/work_pools/{deployments.POOL}", timeout=deployments.BUSY_SECONDS):
            return
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 404:
            raise
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    deployments.post(api, "work_pools/", name=deployments.POOL, type="process", base_job_template=template)


if __name__ == "__main__":
    sys.exit(main())
