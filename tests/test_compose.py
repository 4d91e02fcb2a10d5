"""compose.yaml agrees with Dockerfile, with the programs that it starts, and with itself; no engine."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from flows.serve import _parser
from ldsvm.experiment.config.load import load_config
from tests import chroots, container
from tests.compose_file import ROOT, Service, read, services

COMPOSE, SERVICES = read({}), services({})
OURS = [service for service in SERVICES.values() if service.said["image"] == "ldsvm"]
DOCKERFILE = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text("utf-8")).splitlines()
ENV = dict(word.split("=", 1) for line in DOCKERFILE if line.startswith("ENV ") for word in line.split()[1:])
SECRET = re.compile(r"/run/secrets/(\w+)")


def test_variables_are_replaced_as_an_engine_does() -> None:
    assert services({})["serve"].words[4] == "conf/production/digits.yaml"
    assert services({"SERVE": "conf/mine.yaml"})["serve"].words[4] == "conf/mine.yaml"
    assert services({"SERVE": ""})["serve"].words[4] == "conf/production/digits.yaml"
    assert SERVICES["prefect"].words[:2] == ["sh", "-c"] and '"$@"' in SERVICES["prefect"].words[2]


def test_it_publishes_on_loopback_alone_and_holds_no_secret() -> None:
    text = (ROOT / "compose.yaml").read_text("utf-8")
    published = [port for service in SERVICES.values() for port in service.said.get("ports", [])]
    assert published and all(port.startswith("127.0.0.1:") for port in published)
    assert not re.search(r"://[^@/\s]+:[^@/\s]+@", text)
    assert [one["file"] for one in COMPOSE["secrets"].values()] == ["secrets/password", "secrets/token"]


def test_services_may_write_to_volumes_alone_and_have_no_rights() -> None:
    assert {service.name for service in OURS} == {"prefect", "mlflow", "worker", "serve"}
    for service in OURS:
        assert service.said["read_only"] and service.said["cap_drop"] == ["ALL"]
        assert {place.partition(":")[2] for place in service.said["volumes"]} == {"/data", "/app/data/prepared"}
    places = {key: value for key, value in ENV.items() if value.startswith("/") and key not in ("PATH", "LDSVM_ROOT")}
    assert {"HOME", "LDSVM_RUNS", "PREFECT_HOME", "NUMBA_CACHE_DIR"} <= places.keys()
    assert all(Path(value).is_relative_to("/data") for value in places.values())
    (line,) = (line for line in DOCKERFILE if line.startswith("VOLUME"))
    assert re.findall(r'"([^"]+)"', line) == ["/data", "/app/data/prepared"]


def test_any_user_of_group_0_will_do() -> None:
    (line,) = (line for line in DOCKERFILE if line.startswith("USER"))
    assert {service.said["user"] for service in OURS} == {line.split()[1]} == {"10001:0"}
    assert services({"LDSVM_USER": "12345"})["worker"].user == (12345, 0)
    (made,) = (line for line in DOCKERFILE if "install --directory" in line)
    assert "--group=root --mode=775 /data /app/data/prepared" in made


@pytest.mark.parametrize("service", OURS, ids=lambda service: service.name)
def test_each_has_the_secrets_that_it_reads_and_no_other(service: Service) -> None:
    # As names: uid and mode of a file are ignored by engines, which mount it as it is.
    assert service.said.get("secrets", []) == SECRET.findall(" ".join(service.words))


@pytest.mark.parametrize("service", OURS, ids=lambda service: service.name)
def test_health_is_asked_where_the_service_answers(service: Service) -> None:
    (asked,) = re.findall(r"http://127\.0\.0\.1:(\d+)/", " ".join(service.health))
    options = " ".join(service.words)
    if service.name == "worker":  # the port of Prefect's own check, which --with-healthcheck starts
        assert asked == "8080" and "--with-healthcheck" in options
        return
    assert service.said["ports"] == [f"127.0.0.1:{asked}:{asked}"]
    if service.name != "serve":
        assert f"--port {asked} " in f"{options} "
    assert "--host 0.0.0.0" in options


def test_serve_takes_its_options() -> None:
    words = SERVICES["serve"].words
    assert words[:4] == ["python", "-m", "flows", "serve"]
    asked = _parser().parse_intermixed_args(words[4:])
    assert SERVICES["serve"].said["ports"] == [f"127.0.0.1:{asked.port}:{asked.port}"]
    assert load_config(asked.config, root=ROOT).production is not None


def test_modules_that_are_started_exist() -> None:
    text = " ".join(word for service in OURS for word in service.words)
    names = re.findall(r"python -m ([\w.]+)", text)
    assert {"flows", "flows.deploy", "flows.worker"} == set(names)
    assert all(find_spec(name) for name in names)


def test_addresses_name_services_that_were_waited_for() -> None:
    for service in OURS:
        said = [*service.words, *service.said.get("environment", {}).values()]
        hosts = {urlsplit(url).hostname for url in said if "://" in url} - {"127.0.0.1"}  # that of people
        assert hosts <= service.said["depends_on"].keys()
        for name in hosts & {"prefect", "mlflow"}:
            (url,) = (url for url in said if url.startswith(f"http://{name}:"))
            assert f"127.0.0.1:{urlsplit(url).port}:{urlsplit(url).port}" in SERVICES[name].said["ports"]
    assert f"{urlsplit(SERVICES['worker'].said['environment']['MLFLOW_TRACKING_URI']).netloc}," in " ".join(
        SERVICES["mlflow"].words
    )


def test_both_databases_are_made() -> None:
    asked = SERVICES["db"].said["environment"]
    urls = [word for service in OURS for word in [*service.words, *service.said.get("environment", {}).values()]]
    found = {urlsplit(url).path[1:]: urlsplit(url).username for url in urls if url.startswith("postgresql+")}
    assert found == dict.fromkeys(("prefect", "mlflow"), asked["POSTGRES_USER"])
    assert asked["POSTGRES_DB"] == "prefect"
    assert COMPOSE["configs"]["databases"]["content"] == "CREATE DATABASE mlflow;"


def test_the_check_says_in_one_sentence_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(container, "engine", lambda: None)
    monkeypatch.setattr(chroots, "PACKAGES", {"no-such-program": "buildah", "nor-this-one": "debootstrap"})
    monkeypatch.setattr("os.getuid", lambda: 0)
    monkeypatch.setattr(chroots, "INITDB", None)
    assert container.main([str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said == (
        "No Docker or Podman answers; without one make container also needs buildah, debootstrap and postgresql.\n"
    )
    assert not any(tmp_path.iterdir())
