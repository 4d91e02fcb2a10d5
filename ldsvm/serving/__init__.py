"""The champion over HTTP: the only place for gunicorn, Starlette and prometheus_client.

Two kinds of processes share a folder. `python -m flows serve` itself looks at the registry (`follower.py`), copies the
champion's file into the folder and writes its version to `state.json`. The processes that answer requests (`server.py`,
started by gunicorn) only read that file, so that they need neither MLflow nor the registry.
"""
