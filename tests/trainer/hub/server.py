"""A hub on 127.0.0.1 with what the real clients ask for: repositories, revisions, files, tokens."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_a_token_for_tests"


@dataclass
class Repository:
    """Commits of files, and names of commits."""

    commits: dict[str, Mapping[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    private: bool = False
    gated: bool = False

    def commit(self, files: Mapping[str, bytes], ref: str = "main") -> str:
        """A new commit of these files, to which `ref` then points; returns its hash."""
        sha = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.commits[sha] = dict(files)
        self.refs[ref] = sha
        return sha


@dataclass
class Hub:
    """Repositories by kind and name, and what was asked."""

    url: str = ""
    repositories: dict[tuple[str, str], Repository] = field(default_factory=dict)
    asked: list[tuple[str, str, bool]] = field(default_factory=list)
    """Method, path, and whether the token came with it."""

    def add(self, kind: str, name: str, files: Mapping[str, bytes], **settings: bool) -> Repository:
        found = self.repositories[kind, name] = Repository(**settings)
        found.commit(files)
        return found

    def downloads(self, suffix: str = "") -> list[str]:
        """Paths of files whose bytes were sent."""
        return [
            path for method, path, _ in self.asked if method == "GET" and "/resolve/" in path and path.endswith(suffix)
        ]


@contextmanager
def serving() -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urlsplit(self.path)
            path, recursive = unquote(url.path), "recursive=true" in url.query.lower()
            known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            hub.asked.append((self.command, path, known))
            status, headers, data = _respond(hub, path, body, known, recursive)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


Answer = tuple[int, dict[str, str], bytes]


def _respond(hub: Hub, path: str, body: bytes, known: bool, recursive: bool) -> Answer:
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 4:
        kind, name, rest = parts[1].removesuffix("s"), "/".join(parts[2:4]), parts[4:]
    elif "resolve" in parts:
        at = parts.index("resolve")
        kind = "dataset" if parts[0] == "datasets" else "model"
        name, rest = "/".join(parts[at - 2 : at]), parts[at:]
    else:
        return _error(404, "", "there is no such page")
    repository = hub.repositories.get((kind, name))
    if repository is None or (repository.private and not known):
        return _error(404 if known else 401, "RepoNotFound", "Repository not found")
    what, revision, *tail = rest if len(rest) >= 2 else ("revision", "main")
    sha = repository.refs.get(revision, revision)
    if sha not in repository.commits:
        return _error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
    if repository.gated and not known:
        return _error(401, "GatedRepo", f"Access to {name} is restricted")
    files = repository.commits[sha]
    match what:
        case "revision":
            siblings = [{"rfilename": file} for file in sorted(files)]
            return _json({"id": name, "modelId": name, "sha": sha, "siblings": siblings, "private": False, "tags": []})
        case "tree":
            return _json(_tree(files, "/".join(tail), recursive))
        case "paths-info":
            asked = json.loads(body)["paths"] if body.startswith(b"{") else _form(body)
            return _json([entry for entry in _tree(files, "", recursive=True) if entry["path"] in asked])
        case "resolve":
            file = "/".join(tail)
            if file not in files:
                return _error(404, "EntryNotFound", f"{file} is not there")
            etag = f'"{_oid(files[file])}"'
            return 200, {"ETag": etag, "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}, files[file]
        case _:
            return _error(404, "", f"{what} is not served here")


def _tree(files: Mapping[str, bytes], under: str, recursive: bool) -> list[dict[str, Any]]:
    """Files and folders under a folder: all, or its direct children."""
    prefix = f"{under}/" if under else ""
    names = {file.rpartition("/")[0] for file in files if "/" in file}
    entries = [{"type": "directory", "path": name, "size": 0, "oid": "0" * 40} for name in sorted(names)]
    entries += [{"type": "file", "path": f, "size": len(data), "oid": _oid(data)} for f, data in sorted(files.items())]
    inside = [e for e in entries if str(e["path"]).startswith(prefix)]
    return [e for e in inside if recursive or "/" not in str(e["path"]).removeprefix(prefix)]


def _form(body: bytes) -> list[str]:
    return [
        unquote(pair.partition("=")[2].replace("+", " ")) for pair in body.decode().split("&") if pair[:5] == "paths"
    ]


def _oid(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


def _json(document: Any) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(document).encode()


def _error(status: int, code: str, message: str) -> Answer:
    return status, {"X-Error-Code": code, "X-Error-Message": message}, json.dumps({"error": message}).encode()
