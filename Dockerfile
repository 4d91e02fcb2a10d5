# One image for all of compose.yaml: Prefect's server, MLflow's server, the worker.
# Build: docker build -t ldsvm .   Alone: docker run --rm -v ldsvm:/data ldsvm python -m flows pipeline conf/digits.yaml

# What is installed depends on requirements.lock alone: after a change of the code a few MB are built and sent.

FROM python:3.11-slim AS locked
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --disable-pip-version-check uv==0.13.9
COPY requirements.lock ./
RUN /venv/bin/uv pip sync --no-cache --compile-bytecode --python /venv/bin/python --require-hashes requirements.lock

FROM locked AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY ldsvm ldsvm
COPY data/catalog.yaml data/catalog.yaml
RUN /venv/bin/python -m hatchling build -t wheel -d /dist && python -m zipfile -e /dist/*.whl /wheel

FROM locked AS packages
# What only tests, lint, builds and the site need: the extras `dev` and `docs`, what nothing else of the lock depends
# on, and uv. pip stays: MLflow notes its version beside a model.
RUN /venv/bin/uv pip uninstall --python /venv/bin/python \
    onnxruntime hatchling mypy polars pytest pytest-randomly pytest-timeout pytest-xdist ruff types-pyyaml uv \
    ast-serialize execnet flatbuffers iniconfig librt mypy-extensions polars-runtime-32 tomlkit trove-classifiers \
    crepes mapie sphinx pydata-sphinx-theme numpydoc sphinx-gallery sphinx-copybutton myst-parser umap-learn pynndescent \
    accessible-pygments alabaster babel beautifulsoup4 docutils imagesize mdit-py-plugins roman-numerals \
    snowballstemmer soupsieve sphinxcontrib-applehelp sphinxcontrib-devhelp sphinxcontrib-htmlhelp \
    sphinxcontrib-jsmath sphinxcontrib-qthelp sphinxcontrib-serializinghtml
# And the tests of others, Ray's parts for Java and for reinforcement learning.
RUN find /venv -name tests -type d -prune -exec rm -r {} + && rm -r /venv/lib/python3.11/site-packages/ray/jars \
    /venv/lib/python3.11/site-packages/ray/rllib

FROM python:3.11-slim
# /data has results, stores and caches; the code belongs to root and is not written to. Group 0 may write there, so that
# any user id will do, as OpenShift gives one.
RUN useradd --system --uid 10001 --gid 0 --home-dir /data --no-create-home ldsvm \
    && install --directory --owner=ldsvm --group=root --mode=775 /data /app/data/prepared
COPY --from=packages /venv /venv
COPY --from=wheel /wheel /venv/lib/python3.11/site-packages
WORKDIR /app
COPY . .
RUN chmod -R a+rX . && python -m compileall -q flows ldsvm /venv/lib/python3.11/site-packages/ldsvm
ENV PATH=/venv/bin:$PATH \
    HOME=/data \
    USER=ldsvm \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    LDSVM_ROOT=/app \
    LDSVM_RUNS=/data/runs \
    LDSVM_DATA_HOME=/data/raw \
    NUMBA_CACHE_DIR=/data/numba \
    PREFECT_HOME=/data/prefect \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    DO_NOT_TRACK=1 \
    GIT_PYTHON_REFRESH=quiet \
    MLFLOW_DISABLE_TELEMETRY=true \
    MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false
USER 10001:0
VOLUME ["/data", "/app/data/prepared"]
# compose.yaml has a check of its own for each server; alone, the package must load.
HEALTHCHECK --interval=60s --timeout=30s CMD ["python", "-c", "import ldsvm"]
CMD ["python", "-m", "flows", "--help"]
