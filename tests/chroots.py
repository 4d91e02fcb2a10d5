"""Containers without an engine, for `make container`: each is a process in a root file system made of mounts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.compose_file import ROOT, Service, read, services

BASE, IMAGE = "python:3.11-slim", "ldsvm"
PACKAGES = {"buildah": "buildah", "debootstrap": "debootstrap", "setpriv": "util-linux", "ip": "iproute2"}
INITDB = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
ENCLOSED = "LDSVM_CHECK_ENCLOSED"  # set in the namespaces where the containers run
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
RIGHTLESS = ["setpriv", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
STOP_SECONDS, START_SECONDS = 10.0, 300.0  # before Docker kills what it asked to end


def missing() -> str:
    """Return what this machine lacks, "" when nothing."""
    lacking = [] if sys.platform == "linux" and os.getuid() == 0 else ["root on Linux"]
    lacking += [package for name, package in PACKAGES.items() if shutil.which(name) is None]
    lacking += [] if INITDB else ["postgresql"]
    return " and ".join(filter(None, [", ".join(lacking[:-1]), *lacking[-1:]]))


def enclose(work: Path) -> int:
    """Run this check in namespaces of its own: what it mounts and starts ends with it, and no network leads out."""
    spaces = ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = [sys.executable, "-m", "tests.container", str(work)]
    init = ["sh", "-c", '"$@"; exit $?', "sh"]  # it takes in whoever loses his parent
    own = os.environ | {ENCLOSED: "1"}
    return subprocess.run([*spaces, *init, *command], cwd=ROOT, env=own, check=False).returncode


class Chroots:
    """The containers. work: folder of images, volumes and logs. hidden: folder of the secrets."""

    def __init__(self, work: Path, hidden: Path) -> None:
        self.work, self._hidden = work, hidden
        self._running: dict[str, tuple[subprocess.Popen[bytes], Service]] = {}
        if ENCLOSED in os.environ:
            signal.signal(
                signal.SIGINT, signal.default_int_handler
            )  # ignored in a shell's background, it would stay so
            self._image, self._root = json.loads((work / "built.json").read_text("utf-8")).values()
            self._empty()
            _do("ip", "link", "set", "lo", "up")
            _do("hostname", "ldsvm-check")
            names = " ".join(services())
            (work / "hosts").write_text(f"127.0.0.1 localhost {names}\n", "utf-8")
            self._before = self._listing()

    def build(self) -> str:
        """Build, mount the image, and return its size."""
        self.work.mkdir(parents=True, exist_ok=True)
        if not self._buildah("images", "--quiet", BASE, check=False):
            self._make_base()
        with (self.work / "build.log").open("wb") as log:
            rules = ["--isolation", "chroot", "--pull-never", "--format", "docker", "--layers", "--tag", IMAGE]
            self._buildah("bud", *rules, str(ROOT), stdout=log, stderr=log)
        self._unmount()
        container = self._buildah("from", "--pull-never", "--name", f"{IMAGE}-check", IMAGE)
        found = json.loads(self._buildah("inspect", "--type", "image", IMAGE))
        root = self._buildah("mount", container)
        for folder in ("run/secrets", "proc", "sys", "dev"):
            Path(root, folder).mkdir(parents=True, exist_ok=True)
        Path(root, "etc/hosts").touch()
        image = found["Docker"]["config"]
        (self.work / "built.json").write_text(json.dumps({"image": image, "root": root}), "utf-8")
        return _do("du", "-sh", "--one-file-system", root).split()[0]

    def _unmount(self) -> None:
        for old in self._buildah("containers", "--quiet", "--filter", f"name={IMAGE}-check").split():
            self._buildah("rm", old)

    def _make_base(self) -> None:
        """Make what registries call python:3.11-slim, from the packages of Debian 12, whose Python is 3.11."""
        where = _do("apt-get", "indextargets", "--format", "$(SITE) $(CODENAME) $(CREATED_BY)").splitlines()
        mirrors = [line.split()[0] for line in where if line.split()[1:] == ["bookworm", "Packages"]]
        folder = self.work / "base"
        include = "--include=python3,python3-venv,ca-certificates"
        _do("debootstrap", "--variant=minbase", include, "bookworm", str(folder), *mirrors[:1])
        (folder / "usr/local/bin/python").symlink_to("/usr/bin/python3.11")
        shutil.copyfile(CERTIFICATES, folder / str(CERTIFICATES)[1:])  # those that this machine trusts
        container = self._buildah("from", "scratch")
        self._buildah("copy", "--quiet", container, str(folder), "/")
        path = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        trusted = [word for name in ("SSL_CERT_FILE", "PIP_CERT") for word in ("--env", f"{name}={CERTIFICATES}")]
        self._buildah("config", "--env", path, *trusted, container)
        self._buildah("commit", "--quiet", "--rm", container, BASE)

    def alone(self, user: int, words: Sequence[str]) -> str:
        """Run a container of the image with new volumes, and return what it prints."""
        volumes = [f"alone{place.replace('/', '-')}:{place}" for place in self._image["Volumes"]]
        said = {"user": f"{user}:0", "volumes": volumes, "tmpfs": ["/tmp"], "read_only": True}
        return self._inside(service := Service("alone", said), self._tree(service), words)

    def start(self, name: str) -> None:
        """Start a service and wait until it is healthy."""
        service = services()[name]
        assert all(one in self._running for one in service.said.get("depends_on", {})), f"{name} needs more"
        tree = self._database() if name == "db" else self._tree(service)
        with (self.work / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                self._command(service, tree, service.words), env=self._environment(service), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._running[name] = process, service
        end = time.monotonic() + START_SECONDS
        while True:
            with suppress(subprocess.CalledProcessError):
                self.inside(name, service.health)
                return
            if process.poll() is not None or time.monotonic() > end:
                last = (self.work / f"{name}.log").read_text("utf-8", errors="replace")[-4000:]
                raise RuntimeError(f"{last}\n{name} is not healthy")
            time.sleep(0.5)

    def inside(self, name: str, words: Sequence[str]) -> str:
        """Run a command in the container of a service, and return what it prints."""
        return self._inside(self._running[name][1], self.work / "trees" / name, words)

    def kill(self, name: str) -> None:
        """End all processes of a container at once."""
        process, _ = self._running.pop(name)
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.readlink(place / "root") == str(self.work / "trees" / name):
                    os.kill(int(place.name), signal.SIGKILL)
        process.kill()
        process.wait()

    def stop(self, name: str) -> None:
        """End a container with SIGTERM; raise an error when that does not suffice."""
        process, service = self._running[name]
        process.terminate()
        grace = float(str(service.said.get("stop_grace_period", f"{STOP_SECONDS}s")).removesuffix("s"))
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{name} did not end within {grace:.0f} s after SIGTERM") from None
        finally:
            self.kill(name)

    def close(self) -> None:
        """End all, and raise an error where anything was written to the image."""
        if ENCLOSED not in os.environ:
            self._unmount()
            return
        for name in list(self._running):
            self.kill(name)
        written = sorted(self._before ^ self._listing())
        if written:
            raise RuntimeError(f"written to the image: {written[:20]}")

    def _empty(self) -> None:
        for name in ("volumes", "trees"):
            shutil.rmtree(self.work / name, ignore_errors=True)
        for name in services():
            (self.work / f"{name}.log").unlink(missing_ok=True)

    def _listing(self) -> set[tuple[str, int, int]]:
        """All files of the image, with sizes and times."""
        return {
            (path, stat.st_size, stat.st_mtime_ns)
            for folder, _, names in os.walk(self._root)
            for path in (folder, *(f"{folder}/{name}" for name in names))
            for stat in [os.lstat(path)]
        }

    def _tree(self, service: Service) -> Path:
        """Return the root file system of a container, mounted as the file says."""
        tree = self.work / "trees" / service.name
        if tree.exists():
            return tree
        tree.mkdir(parents=True)
        _do("mount", "--bind", self._root, str(tree))
        _do("mount", "-t", "proc", "proc", str(tree / "proc"))
        _do("mount", "-t", "sysfs", "-o", "ro", "sysfs", str(tree / "sys"))
        _do("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(tree / "dev"))
        for device in ("null", "zero", "full", "random", "urandom", "tty"):
            (tree / "dev" / device).touch()
            _do("mount", "--bind", f"/dev/{device}", str(tree / "dev" / device))
        (tree / "dev/fd").symlink_to("/proc/self/fd")
        (tree / "dev/shm").mkdir()
        size = service.said.get("shm_size", "64m").removesuffix("b")
        memory = {"/dev/shm": f"size={size}", **dict.fromkeys(service.said.get("tmpfs", []), "noexec")}
        for place, options in memory.items():
            _do("mount", "-t", "tmpfs", "-o", f"nosuid,nodev,mode=1777,{options}", "tmpfs", f"{tree}{place}")
        for said in service.said.get("volumes", []):
            name, _, place = said.partition(":")
            volume = self.work / "volumes" / name
            if not volume.exists():  # an engine fills a new volume with what the image has there
                _do("mkdir", "-p", str(volume.parent))
                _do("cp", "-a", f"{self._root}{place}", str(volume))
            _do("mount", "--bind", str(volume), f"{tree}{place}")
        _do("mount", "--bind", str(self.work / "hosts"), str(tree / "etc/hosts"))
        if asked := service.said.get("secrets"):
            _do("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(tree / "run/secrets"))
            for name in asked:
                (place := tree / "run/secrets" / name).touch()
                _do("mount", "--bind", "-o", "ro", str(self._hidden / name), str(place))
        if service.said.get("read_only"):
            _do("mount", "-o", "remount,bind,ro", str(tree))
        return tree

    def _environment(self, service: Service) -> dict[str, str]:
        if service.name == "db":
            assert INITDB is not None
            password = (self._hidden / "password").read_text("utf-8")
            return {"PATH": f"{Path(INITDB).resolve().parent}:{os.environ['PATH']}", "PGPASSWORD": password}
        image = dict(one.split("=", 1) for one in self._image["Env"])
        return {**image, **service.said.get("environment", {})}

    def _command(self, service: Service, tree: Path, words: Sequence[str]) -> list[str]:
        if service.name == "db":
            return ["setpriv", "--reuid=nobody", "--clear-groups", "env", "-C", "/", *(words or self._postgres())]
        user, group = service.user
        own = [*RIGHTLESS, f"--reuid={user}", f"--regid={group}"]
        return ["chroot", str(tree), *own, "env", "-C", self._image["WorkingDir"], *words]

    def _inside(self, service: Service, tree: Path, words: Sequence[str]) -> str:
        done = subprocess.run(
            self._command(service, tree, words), env=self._environment(service), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    def _database(self) -> Path:
        """Do what the image of PostgreSQL does at its first start, in the folder that is returned."""
        folder, asked = self.work / "volumes" / "db", services()["db"].said
        folder.mkdir(parents=True)
        user, name = (asked["environment"][f"POSTGRES_{key}"] for key in ("USER", "DB"))
        (password := self.work / "pwfile").write_bytes((self._hidden / "password").read_bytes())
        for place in (folder, password):
            shutil.chown(place, "nobody")
        first = read()["configs"]["databases"]["content"]
        for words, given in (
            (["initdb", "-U", user, "--locale=C.UTF-8", "--auth=scram-sha-256", f"--pwfile={password}"], ""),
            (["postgres", "--single", "postgres"], f"CREATE DATABASE {name};\n{first}\n"),
        ):
            command = self._command(services()["db"], folder, words)
            environment = self._environment(services()["db"]) | {"PGDATA": str(folder)}
            subprocess.run(command, env=environment, input=given, text=True, check=True, capture_output=True)
        password.unlink()
        return folder

    def _postgres(self) -> list[str]:
        folder = self.work / "volumes" / "db"
        return ["postgres", "-D", str(folder), "-c", "listen_addresses=*", "-c", f"unix_socket_directories={folder}"]

    def _buildah(self, *words: str, check: bool = True, **streams: Any) -> str:
        store = [
            "--root",
            str(self.work / "storage"),
            "--runroot",
            str(self.work / "run"),
            "--storage-driver",
            "overlay",
        ]
        streams = streams or {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        done = subprocess.run(["buildah", *store, *words], check=check, text=True, **streams)
        return (done.stdout or "").strip()


def _do(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
