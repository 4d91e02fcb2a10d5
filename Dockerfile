# One image for all of compose.yaml: Prefect's server, MLflow's server, the worker.
# Build: docker build -t ldsvm .   Alone: docker run --rm -v ldsvm:/data ldsvm python -m flows pipeline conf/digits.yaml

FROM python:3.11-slim AS build
WORKDIR /app
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --disable-pip-version-check uv==0.13.9
COPY requirements.lock ./
RUN /venv/bin/uv pip sync --no-cache --compile-bytecode --python /venv/bin/python --require-hashes requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY ldsvm ldsvm
COPY data/catalog.yaml data/catalog.yaml
RUN /venv/bin/uv pip install --no-cache --compile-bytecode --python /venv/bin/python --no-deps --no-build-isolation .
# What only tests, lint, builds and the site need: the extras `dev` and `docs`, what nothing else of the lock depends
# on, and uv.
RUN /venv/bin/uv pip uninstall --python /venv/bin/python \
    onnxruntime hatchling mypy polars pytest pytest-randomly pytest-timeout pytest-xdist ruff types-pyyaml uv \
    ast-serialize execnet flatbuffers iniconfig librt mypy-extensions polars-runtime-32 tomlkit trove-classifiers \
    crepes mapie sphinx pydata-sphinx-theme numpydoc sphinx-gallery sphinx-copybutton myst-parser umap-learn pynndescent \
    accessible-pygments alabaster babel beautifulsoup4 docutils imagesize mdit-py-plugins roman-numerals \
    snowballstemmer soupsieve sphinxcontrib-applehelp sphinxcontrib-devhelp sphinxcontrib-htmlhelp \
    sphinxcontrib-jsmath sphinxcontrib-qthelp sphinxcontrib-serializinghtml

FROM python:3.11-slim
# /data has results, prepared data and caches; the code belongs to root and is not written to.
RUN useradd --system --uid 10001 --create-home --home-dir /home/ldsvm ldsvm \
    && install --directory --owner=ldsvm --group=ldsvm /data
COPY --from=build /venv /venv
WORKDIR /app
COPY . .
RUN install --directory --owner=ldsvm --group=ldsvm data/prepared
ENV PATH=/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    LDSVM_ROOT=/app \
    LDSVM_RUNS=/data/runs \
    NUMBA_CACHE_DIR=/data/numba \
    PREFECT_HOME=/data/prefect \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    DO_NOT_TRACK=1 \
    MLFLOW_DISABLE_TELEMETRY=true \
    MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false
USER ldsvm
VOLUME /data
# compose.yaml has a check of its own for each server; alone, the package must load.
HEALTHCHECK --interval=60s --timeout=30s CMD ["python", "-c", "import ldsvm"]
CMD ["python", "-m", "flows", "--help"]
