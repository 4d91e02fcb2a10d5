"""The worker of `make up`: Prefect's own, after the runs that an earlier worker left have been marked as crashed.

`python -m flows.worker`, with PREFECT_API_URL and options of `prefect worker start`; started by flows/servers.py, and
by compose.yaml.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flows.deployments import POOL, mark_crashed
from flows.launcher import hurry, run
from ldsvm.production.alarms import Message, send


def main() -> None:
    """Import Prefect, wait for its server, mark the runs left behind, and work."""
    api = os.environ["PREFECT_API_URL"]
    hurry(["prefect.cli.worker", "prefect.cli._worker_utils", "prefect.workers.process"], f"{api}/health")
    for sentence in mark_crashed(api):
        print(sentence, flush=True)
        send(Message("crashed", sentence), Path(os.environ["LDSVM_RUNS"]), print)
    run(["prefect", "worker", "start", "--pool", POOL, "--type", "process", "--name", "worker", *sys.argv[1:]])


if __name__ == "__main__":
    main()
