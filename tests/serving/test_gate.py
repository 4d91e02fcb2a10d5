"""Who may ask, how much and where, and what is counted of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ldsvm.serving import metrics
from ldsvm.serving.folder import TOKEN
from ldsvm.serving.gate import Gate, Rate
from tests.serving.conftest import rows

ROW = {"rows": [[1, 2]]}
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def test_routes_and_methods_that_are_not_there(people: Any, serving: Callable[..., Any]) -> None:
    with serving(people) as client:
        assert client.get("/health").json() == {"status": "alive"}
        assert client.get("/ready").json() == {"model": "people", "version": 1}
        assert client.get("/").json()["model"] == "people"
        assert client.post("/predict/", json=ROW).status_code == 404
        answer = client.get("/nothing")
        assert answer.status_code == 404
        assert answer.json()["error"].startswith("There is nothing at '/nothing'; allowed: POST /predict,")
        answer = client.get("/predict")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert answer.json()["error"].startswith("GET is not allowed for this path; allowed: POST /predict,")
        for path in ("/health", "/nothing"):  # gunicorn would warn in the log of each body
            assert client.ask("HEAD", path).content == b""


def test_without_a_version_the_server_lives_but_is_not_ready(serving: Callable[..., Any]) -> None:
    with serving() as client:
        assert client.get("/health").status_code == 200
        for answer in (client.get("/ready"), client.get("/schema"), client.post("/predict", json=ROW)):
            assert (answer.status_code, answer.json()) == (503, {"error": "No version of people is loaded yet."})


def test_a_request_that_is_too_large(people: Any, serving: Callable[..., Any]) -> None:
    table = rows(2_000).to_numpy().tolist()
    sentence = "The request has more than 1,000 bytes; send fewer rows at a time."

    async def pieces() -> Any:  # without a content-length
        for _ in range(100):
            yield b" " * 100

    with serving(people, max_body=1_000) as client:
        for answer in (client.post("/predict", json={"rows": table}), client.post("/predict", content=pieces())):
            assert (answer.status_code, answer.json()) == (413, {"error": sentence})
        assert client.post("/predict", json=ROW).status_code == 200
    with serving(people) as client:  # beside the others, as it takes long
        assert len(client.post("/predict", json={"rows": table}).json()["answers"]) == 2_000


def test_a_token(people: Any, serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "a-token-of-some-length")
    with serving(people) as client:
        for header in ({}, {"authorization": "Bearer another"}, {"authorization": "Basic a-token-of-some-length"}):
            for answer in (client.post("/predict", json=ROW, headers=header), client.get("/metrics", headers=header)):
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
                assert answer.json()["error"].startswith("The request has no token or a wrong one; allowed: the header")
        assert [client.get(path).status_code for path in ("/health", "/ready")] == [200, 200]
        good = {"authorization": "Bearer a-token-of-some-length"}
        assert client.post("/predict", json=ROW, headers=good).status_code == 200


def test_too_many_requests(people: Any, serving: Callable[..., Any]) -> None:
    with serving(people, max_rate=3) as client:
        codes = [client.post("/predict", json=ROW).status_code for _ in range(30)]
        assert codes[:3] == [200] * 3 and 429 in codes
        assert client.get("/ready").status_code == 200
        last = client.post("/predict", json=ROW)
        assert last.status_code == 200 or last.headers["retry-after"] == "1"


def test_the_rate_is_that_of_a_bucket() -> None:
    now = [0.0]
    rate = Rate(2.0, lambda: now[0])
    assert [rate.allows() for _ in range(3)] == [True, True, False]
    now[0] = 0.5  # a half of a second is room for one
    assert [rate.allows() for _ in range(2)] == [True, False]
    now[0] = 100.0  # and a long time for no more than two
    assert [rate.allows() for _ in range(3)] == [True, True, False]
    slow = Rate(0.1, lambda: now[0])
    assert [slow.allows() for _ in range(2)] == [True, False]
    assert all(Rate(0.0).allows() for _ in range(1000))


def numbers(client: Any) -> dict[str, float]:
    lines = client.get("/metrics").text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_metrics_count_requests_and_rows(people: Any, serving: Callable[..., Any]) -> None:
    good, bad = (f'ldsvm_requests_total{{path="/predict",status="{status}"}}' for status in (200, 400))
    other = 'ldsvm_requests_total{path="other",status="404"}'
    with serving(people) as client:
        before = numbers(client)
        client.post("/predict", json={"rows": [[1, 2], [3, 4]]})
        client.post("/predict", json={"rows": [[1, 200]]})
        client.post("/predict", json={})
        client.get("/x")
        client.get("/y")
        after = numbers(client)
    more = {name: after[name] - before.get(name, 0.0) for name in after}
    assert (more[good], more[bad], more[other], more["ldsvm_rows_total"]) == (2, 1, 2, 3)
    assert more["ldsvm_odd_requests_total"] == 1 and after["ldsvm_version"] == 1
    assert more['ldsvm_request_seconds_count{path="/predict"}'] == 3
    assert after["ldsvm_loaded_timestamp_seconds"] > 1e9 and after["ldsvm_registry_timestamp_seconds"] > 1e9


def test_an_answer_is_counted_before_it_is_sent_so_that_no_kill_loses_the_count() -> None:
    """What a process has sent when it is killed has been counted; an application that fails counts as 500."""

    async def answers(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("broken")

    def count(status: str) -> float:
        return metrics.REQUESTS.labels("/predict", status)._value.get()

    scope = {"type": "http", "path": "/predict", "method": "POST", "headers": []}
    before, failed, sent = count("200"), count("500"), []

    async def send(message: Any) -> None:
        sent.append(count("200") - before)

    asyncio.run(Gate(answers, None, Rate(0.0))(scope, None, send))
    assert sent == [1, 1] and count("200") - before == 1
    with pytest.raises(RuntimeError, match="broken"):
        asyncio.run(Gate(fails, None, Rate(0.0))(scope, None, send))
    assert count("500") - failed == 1 and count("200") - before == 1
