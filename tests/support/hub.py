"""A hub that offers one dataset, in place of Hugging Face's; and a server that stores models as the hub does."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest

from longsumbench.corpora.reading import hub
from support.serving import QuietHandler, serving


def offer_on_hub(
    monkeypatch: pytest.MonkeyPatch, folder: Path, rows: list[dict[str, Any]]
) -> list[tuple[str, str | None]]:
    """Offer rows as all three splits, at revision 0123abc; return the repositories and configurations asked for."""
    asked: list[tuple[str, str | None]] = []

    def load_dataset(repository: str, config: str | None, **settings: Any) -> datasets.DatasetDict:
        asked.append((repository, config))
        names = ("train", "validation", "test")
        return datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name in names})

    hub.chosen_revision.cache_clear()
    monkeypatch.setenv("HF_DATASETS_CACHE", str(folder / "library"))
    monkeypatch.setattr(hub, "unreachable", lambda: None)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    info = type("Info", (), {"sha": "0123abc"})()
    monkeypatch.setattr(
        huggingface_hub.HfApi, "dataset_info", lambda self, repository, **settings: info
    )
    return asked


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:40]


@dataclass
class ModelHub:
    """A stand-in of the hub's server.

    Attributes:
        endpoint: its address.
        files: repository → path → content.
        private: repository → True if it was created as a private one.
        keys: headers "Authorization" of all requests that change something.
        refused: part of an address; such requests get HTTP 403.
        messages: of the commits.
    """

    endpoint: str = ""
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    keys: list[str | None] = field(default_factory=list)
    refused: str = "nothing"
    messages: list[str] = field(default_factory=list)

    def revision(self, repository: str) -> str:
        """Return a commit that changes with the files."""
        names = sorted((path, _digest(content)) for path, content in self.files[repository].items())
        return _digest(json.dumps(names).encode())

    def create(self, values: dict[str, Any]) -> dict[str, str]:
        """Create a repository, which may exist."""
        repository = f"{values['organization']}/{values['name']}"
        self.files.setdefault(repository, {})
        self.private[repository] = values.get("visibility") == "private" or bool(
            values.get("private")
        )
        return {"url": f"{self.endpoint}/{repository}", "id": repository}

    def commit(self, repository: str, lines: list[dict[str, Any]]) -> dict[str, str]:
        """Store the files of a commit; none is so large that the library sends it apart."""
        for line in lines:
            if line["key"] == "header":
                self.messages.append(line["value"]["summary"])
            else:
                assert (line["key"], line["value"]["encoding"]) == ("file", "base64"), line["key"]
                self.files[repository][line["value"]["path"]] = base64.b64decode(
                    line["value"]["content"]
                )
        oid = self.revision(repository)
        return {"commitUrl": f"{self.endpoint}/{repository}/commit/{oid}", "commitOid": oid}

    def tree(self, repository: str) -> list[dict[str, Any]]:
        """List the files of a repository."""
        return [
            {"type": "file", "path": path, "size": len(content), "oid": _digest(content)}
            for path, content in self.files[repository].items()
        ]


class _Handler(QuietHandler):
    state: ModelHub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        self.state.keys.append(self.headers["authorization"])
        path = self.path.partition("?")[0]
        repository = "/".join(path.split("/")[3:5])
        if self.state.refused in path:
            self._send(403, {"error": "no write access"})
        elif path == "/api/repos/create":
            self._send(200, self.state.create(json.loads(body)))
        elif "/preupload/" in path:
            answer = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            paths = [file["path"] for file in json.loads(body)["files"]]
            self._send(200, {"files": [{"path": path, **answer} for path in paths]})
        elif "/commit/" in path:
            self._send(
                200, self.state.commit(repository, [json.loads(line) for line in body.splitlines()])
            )
        else:
            self._send(200, {"errors": [], "warnings": []})  # checks the card

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = self.path.partition("?")[0].strip("/").split("/")
        repository = "/".join(parts[2:4] if parts[0] == "api" else parts[:2])
        files = self.state.files.get(repository)
        if files is None:
            self._send(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        elif parts[0] != "api":
            content, revision = files["/".join(parts[4:])], self.state.revision(repository)
            self._send(200, content, {"ETag": f'"{_digest(content)}"', "X-Repo-Commit": revision})
        elif "tree" in parts:
            self._send(200, self.state.tree(repository))
        else:
            names = [{"rfilename": path} for path in files]
            self._send(
                200, {"id": repository, "sha": self.state.revision(repository), "siblings": names}
            )

    def _send(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send(status, content, {"Content-Length": str(len(content)), **(headers or {})})


@contextmanager
def model_hub(folder: Path) -> Iterator[ModelHub]:
    """Serve an empty hub, and let the library use it, with a token and a cache below a folder."""
    state = ModelHub()
    with serving(_Handler, state) as address, pytest.MonkeyPatch.context() as patch:
        state.endpoint = address
        constants = huggingface_hub.constants
        patch.setattr(constants, "ENDPOINT", address)
        template = "/{repo_id}/resolve/{revision}/{filename}"
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + template)
        patch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub"))
        patch.setenv("HF_TOKEN", "a token for tests")
        yield state
