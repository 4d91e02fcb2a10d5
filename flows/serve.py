"""The command `python -m flows serve`: serve the champion over HTTP, without Prefect."""

from __future__ import annotations

import argparse
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows import processes

if TYPE_CHECKING:
    from ldsvm.serving.folder import Folder, Settings

EXAMPLES = """
examples:
  python -m flows serve conf/production/digits.yaml
  python -m flows serve conf/my.yaml --port 8000 --token-file secrets/token --max-rate 100
  curl http://127.0.0.1:5001/predict -H 'Content-Type: text/csv' --data-binary @new.csv

Predictions come from the version with the alias champion; a promotion or rollback takes effect within two seconds.
GET / lists the routes. The token may also be in the environment variable LDSVM_SERVE_TOKEN.
exit codes: 0 ended by SIGTERM or Ctrl-C, 1 failure while serving, 2 a mistake in the command or the file.
"""
EVERY = 0.2  # seconds between two looks at whether the registry has changed
STOP = 30.0  # seconds that the processes have to end
AT_ONCE = 10.0  # seconds below which a server that ended would only end again


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or Ctrl-C, and return the exit code."""
    asked = _parser().parse_intermixed_args(arguments)
    from flows import _cli
    from ldsvm.atomic import alone
    from ldsvm.experiment.config.load import ConfigError
    from ldsvm.experiment.config.places import check_runs
    from ldsvm.experiment.search.failure import sentence
    from ldsvm.production.schema_check import file_of
    from ldsvm.serving.folder import Folder, Settings

    try:
        config = _cli.experiment(asked.config, asked.overrides)
        production = _cli.production_section(config, "serve")
        token = _token(asked.token_file)
        _check_system(asked.host)
        check_runs(config.paths.runs)
        processes.check_port(asked.port, "--port", asked.host)
        settings = Settings(
            production.model, asked.host, asked.port, asked.workers, asked.max_body, asked.max_rate,
            production.schema, str(file_of(config).resolve()),
        )  # fmt: skip
        place = config.paths.runs / "serve" / str(asked.port)
        with alone(place, wait=False):
            folder = Folder(_emptied(place))
            folder.keep(settings)
            return _serve(folder, settings, config, token)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except TimeoutError:
        print(f"--port is {asked.port}, which another serve command uses; allowed: another port.", file=sys.stderr)
        return 2
    except OSError as error:  # such as a folder that somebody removed
        print(f"serve failed: {sentence(error)}", file=sys.stderr)
        return 1


def _serve(folder: Folder, settings: Settings, config: Any, token: str | None) -> int:
    """Keep gunicorn running, and the folder up to date with the registry."""
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, signal.default_int_handler)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    server = _start(folder, token)
    begun = time.monotonic()
    try:
        from ldsvm.production.registry import Registry
        from ldsvm.serving.follower import Follower
        from ldsvm.tracking.client import Tracker

        follower = Follower(folder, settings, lambda: Registry(Tracker(config.paths.runs, config.name), settings.model))
        print(f"{settings.model} on http://{settings.host}:{settings.port} (Ctrl-C stops it)", flush=True)
        while True:
            follower.look()
            if (code := server.poll()) is not None:
                if time.monotonic() - begun < AT_ONCE:
                    print(f"serve failed: gunicorn ended with exit code {code}, see above.", file=sys.stderr)
                    return 1
                server, begun = _start(folder, token), time.monotonic()
            time.sleep(EVERY)
    except KeyboardInterrupt:
        return 0
    finally:
        _end(server)


def _start(folder: Folder, token: str | None) -> subprocess.Popen[bytes]:
    from ldsvm.serving.folder import METRICS, TOKEN

    numbers = folder.path / "metrics"
    shutil.rmtree(numbers, ignore_errors=True)
    numbers.mkdir()
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    own = {**one_thread, METRICS: str(numbers), **({} if token is None else {TOKEN: token})}
    # Its own session: Ctrl-C is for us, who let the requests in flight be answered.
    return subprocess.Popen(
        [sys.executable, "-m", "ldsvm.serving.server", str(folder.path)], env=os.environ | own,
        stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=processes.end_with_parent,
    )  # fmt: skip


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(STOP)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _emptied(place: Path) -> Path:
    """Return a folder without what an earlier server left there; its lock stays."""
    for one in place.iterdir():
        if one.is_dir():
            shutil.rmtree(one)
        elif one.name != ".lock":
            one.unlink()
    return place


def _check_system(host: str) -> None:
    """Raise ConfigError where gunicorn cannot run, or an address is not one of this computer."""
    from ldsvm.experiment.config.load import ConfigError

    if sys.platform == "win32":
        raise ConfigError("serve needs gunicorn, which does not run on Windows; use mlflow models serve there.")
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError:
        raise ConfigError(f"--host is {host!r}; allowed: an address of this computer, such as 127.0.0.1.") from None


def _token(file: str | None) -> str | None:
    """Return the token that requests must have, None where none is asked for; raise ConfigError for an empty one."""
    from ldsvm.experiment.config.load import ConfigError
    from ldsvm.serving.folder import TOKEN

    try:
        given = os.environ.get(TOKEN) if file is None else Path(file).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigError(f"--token-file is {file}, which cannot be read ({why}); allowed: a text file.") from None
    if given is None:
        return None
    if not re.fullmatch(r"[!-~]{16,}", found := given.strip()):
        where = TOKEN if file is None else f"--token-file {file}"
        raise ConfigError(f"{where} holds no valid token; allowed: 16 or more ASCII characters without spaces.")
    return found


def _number(least: float, largest: float, kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            found = kind(text)
        except ValueError:
            found = None
        if found is None or not least <= found <= largest:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r}; allowed: {what} from {least:g} to {largest:g}")
        return found

    return read


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flows serve",
        description="Serve predictions of a production file's champion over HTTP.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", metavar="CONFIG", help="an experiment file with a section production")
    parser.add_argument("overrides", metavar="key=value", nargs="*", default=[], help="override entries of the file")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1, this machine only)"
    )
    parser.add_argument("--port", type=_number(1, 65535, int), default=5001, help="the port (default: 5001)")
    parser.add_argument(
        "--workers", type=_number(1, 64, int), default=2, help="number of processes that answer requests (default: 2)"
    )
    parser.add_argument(
        "--max-body", metavar="BYTES", type=_number(100, 10**9, int), default=1_000_000,
        help="largest request body (default: 1000000); larger ones get status 413",
    )  # fmt: skip
    parser.add_argument(
        "--max-rate", metavar="N", type=_number(0, 10**6, float), default=0.0,
        help="most requests per second (default: 0, no limit); those beyond it get status 429",
    )  # fmt: skip
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file with the token that each request must send, as Authorization: Bearer TOKEN",
    )
    return parser
