"""A bare control plane on loopback: etcd and kube-apiserver with RBAC and an audit log, nothing that acts by itself."""

import base64
import json
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ADMIN_TOKEN, OPERATOR_TOKEN = "admin-of-the-tests", "operator-of-the-tests"
OPERATOR_USER = "system:serviceaccount:simplerl-system:simplerl-operator"
LIMITED_TOKEN = "operator-of-one-namespace"
LIMITED_USER = "system:serviceaccount:limited-system:simplerl-operator"
_WRITES = ("create", "update", "patch", "delete", "deletecollection")
_AUDIT_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: [operators]}
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
"""


class ApiRefusal(Exception):
    """An answer of the API server that is no success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def eventually(what: str, ask: Callable[[], Any], seconds: float = 30.0) -> Any:
    """The first answer that is true; fails with the last one after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {seconds:.0f} s waiting for {what}; last answer: {answer!r}")
        time.sleep(0.05)


class ControlPlane:
    """One etcd and one API server in a folder of their own."""

    def __init__(self, folder: Path, etcd: Path, kube_apiserver: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._programs = (etcd, kube_apiserver)
        self._running: list[subprocess.Popen[bytes]] = []
        self.tls = ssl.create_default_context()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        client, peer = free_port(), free_port()
        at = self.folder
        self._openssl("genrsa", "-out", f"{at}/sa.key", "2048")
        self._openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-keyout", f"{at}/tls.key", "-out", f"{at}/tls.crt", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=IP:127.0.0.1",
        )  # fmt: skip
        (at / "audit.yaml").write_text(_AUDIT_POLICY)
        (at / "tokens.csv").write_text(
            f'{ADMIN_TOKEN},admin,1,"system:masters"\n{OPERATOR_TOKEN},{OPERATOR_USER},2,"system:serviceaccounts,operators"\n'
            f'{LIMITED_TOKEN},{LIMITED_USER},3,"system:serviceaccounts,operators"\n'
        )
        etcd, apiserver = self._programs
        self._spawn("etcd", [
            etcd, f"--data-dir={at}/etcd", f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}", f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}", f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync", "--log-level=warn",
        ])  # fmt: skip
        self._spawn("kube-apiserver", [
            apiserver, "--bind-address=127.0.0.1", f"--secure-port={self.port}",
            f"--etcd-servers=http://127.0.0.1:{client}", "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC", f"--token-auth-file={at}/tokens.csv",
            f"--tls-cert-file={at}/tls.crt", f"--tls-private-key-file={at}/tls.key",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={at}/sa.key",
            f"--service-account-signing-key-file={at}/sa.key", "--disable-admission-plugins=ServiceAccount",
            f"--audit-policy-file={at}/audit.yaml", f"--audit-log-path={at}/audit.log",
            "--audit-log-maxsize=4000",  # MB; at 100 a new file would begin, and lines are counted
        ])  # fmt: skip
        self.tls = ssl.create_default_context(cafile=str(at / "tls.crt"))
        eventually("the API server", self._ready, 60)

    def stop(self) -> None:
        for process in reversed(self._running):
            process.kill()  # nothing of it is kept
        for process in self._running:
            process.wait(10)

    def kubeconfig(self, token: str) -> Path:
        path = self.folder / f"{token}.kubeconfig"
        authority = base64.b64encode((self.folder / "tls.crt").read_bytes()).decode()
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.url, "certificate-authority-data": authority}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        path.write_text(json.dumps(document))
        return path

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Any:
        """The answer's document. Raises ApiRefusal."""
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": content_type, "Accept": accept}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.tls) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            try:
                message = json.loads(text)["message"]
            except (ValueError, KeyError):
                message = text
            raise ApiRefusal(error.code, message) from None

    def find(self, path: str) -> Any:
        """The object at a path, or None."""
        try:
            return self.request("GET", path)
        except ApiRefusal as refusal:
            if refusal.status == 404:
                return None
            raise

    def serves(self, path: str) -> bool:
        """Whether objects of a kind can be listed: its definition is there a moment before its storage is."""
        try:
            return self.find(path) is not None
        except ApiRefusal as refusal:
            if refusal.status == 429:
                return False
            raise

    def apply(self, path: str, document: Mapping[str, Any]) -> Any:
        """Server-side apply with strict validation, as `kubectl apply --server-side` does it."""
        query = "?fieldManager=tests&force=true&fieldValidation=Strict"
        return self.request("PATCH", path + query, document, "application/apply-patch+yaml")

    def merge(self, path: str, patch: Mapping[str, Any]) -> Any:
        return self.request("PATCH", path, patch, "application/merge-patch+json")

    def remove(self, path: str) -> None:
        """An object is gone at once, as when a kubelet confirms its end; a controller may have been quicker."""
        try:
            self.request("DELETE", path, {"gracePeriodSeconds": 0})
        except ApiRefusal as refusal:
            if refusal.status != 404:
                raise

    def namespace(self, name: str) -> str:
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def writes(self, user: str, namespace: str, since: int) -> list[dict[str, Any]]:
        """Writes of a user in a namespace by the audit log, from a line on."""
        return [e for e in self.asked(user, since, namespace) if e["verb"] in _WRITES]

    def asked(self, user: str, since: int = 0, namespace: str | None = None) -> list[dict[str, Any]]:
        """What a user asked of objects (of a namespace, or of all), by the audit log, from a line on."""
        entries = map(json.loads, self._audit()[since:])
        of_user = [e for e in entries if e["user"]["username"] == user and "objectRef" in e]
        return [e for e in of_user if namespace in (None, e["objectRef"].get("namespace"))]

    def audit_length(self) -> int:
        return len(self._audit())

    def _audit(self) -> list[str]:
        """Whole lines only: the newest may be in the middle of being written."""
        return (self.folder / "audit.log").read_text().rpartition("\n")[0].splitlines()

    def _ready(self) -> bool:
        for process in self._running:
            if process.poll() is not None:
                logs = "\n".join(p.read_text()[-2000:] for p in sorted(self.folder.glob("*.err")))
                raise AssertionError(f"{process.args} ended: {logs}")
        try:
            request = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
            with urllib.request.urlopen(request, timeout=5, context=self.tls) as response:
                return response.status == 200
        except OSError:
            return False

    def _spawn(self, name: str, command: list[Any]) -> None:
        with (self.folder / f"{name}.err").open("wb") as log:
            self._running.append(subprocess.Popen([str(c) for c in command], stdout=log, stderr=log))

    @staticmethod
    def _openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)
