"""The champion over HTTP: the only place for gunicorn, Starlette and prometheus_client.

Two kinds of processes share a folder. The one that `python -m flows serve` runs looks at the registry (`follower.py`),
copies the champion's file into the folder and says in `state.json` which version it is. The processes that answer
(`server.py`: gunicorn's) only look at that file, so that they need neither MLflow nor the registry.
"""
