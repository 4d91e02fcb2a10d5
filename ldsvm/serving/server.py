"""The processes that answer: python -m ldsvm.serving.server FOLDER, which `python -m flows serve` starts.

gunicorn's master listens, imports what all of them need, forks them, and forks another one when one dies. It answers
nothing itself and runs no numerics, so that a fork is safe.
"""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

from gunicorn.app.base import BaseApplication

from ldsvm.serving import metrics
from ldsvm.serving.app import application
from ldsvm.serving.folder import Folder

PAUSE = 5  # seconds after which a connection without a request is closed
GRACE = 20  # seconds that the requests in flight have after SIGTERM


class Server(BaseApplication):  # type: ignore[misc]
    """gunicorn with the settings of a folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        super().__init__()

    def load_config(self) -> None:
        """Tell gunicorn its settings; it calls this."""
        settings = self.folder.settings()
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        chosen: dict[str, Any] = {
            "bind": [f"{host}:{settings.port}"], "workers": settings.workers, "preload_app": True,
            "worker_class": "gunicorn.workers.gasgi.ASGIWorker", "keepalive": PAUSE, "graceful_timeout": GRACE,
            "control_socket_disable": True, "worker_tmp_dir": str(self.folder.path), "loglevel": "warning",
            "child_exit": _child_exit, "proc_name": f"ldsvm serve {settings.model}",
        }  # fmt: skip
        for name, value in chosen.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the ASGI application; gunicorn calls it, once, before it forks."""
        import pandas  # noqa: F401
        import sklearn.pipeline  # noqa: F401

        import ldsvm.estimator  # noqa: F401

        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were checked before
        return application(self.folder)


def _child_exit(_: Any, worker: Any) -> None:
    metrics.ended(worker.pid)


def main() -> None:
    """Answer until SIGTERM."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    Server(Folder(Path(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
