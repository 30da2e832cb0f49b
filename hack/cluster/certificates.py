"""A throw-away certificate authority, and the certificate and kubeconfig of each part of the cluster."""

import base64
import json
from pathlib import Path

from . import addresses, commands

DAYS = "365"
SUBJECTS = {
    "kubelet": f"/O=system:nodes/CN=system:node:{addresses.NODE}",
    "apiserver": "/CN=kube-apiserver",
    "apiserver-kubelet": "/O=system:masters/CN=kube-apiserver-kubelet",
    "front-proxy": "/CN=front-proxy",
    "admin": "/O=system:masters/CN=admin",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "proxy": "/CN=system:kube-proxy",
}
ALTERNATIVE_NAMES = {
    "kubelet": f"DNS:{addresses.NODE},IP:{addresses.NODE_IP}",
    "apiserver": "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,"
    "DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:127.0.0.1,"
    f"IP:{addresses.NODE_IP},IP:{addresses.API_IP}",
}
WITH_KUBECONFIG = ("kubelet", "admin", "controller-manager", "scheduler", "proxy")


def make(folder: Path) -> None:
    if (folder / "complete").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    openssl(f"genrsa -out {folder}/sa.key 2048")
    openssl(f"rsa -in {folder}/sa.key -pubout -out {folder}/sa.pub")
    new_key(folder / "ca.key")
    openssl(
        f"req -x509 -new -key {folder}/ca.key -subj /CN=simplerl-cluster -days {DAYS} -out {folder}/ca.crt "
        "-addext keyUsage=critical,keyCertSign,cRLSign"
    )
    for name in SUBJECTS:
        sign(folder, name)
    for name in WITH_KUBECONFIG:
        write_kubeconfig(folder, name)
    (folder / "complete").touch()


def sign(folder: Path, name: str) -> None:
    new_key(folder / f"{name}.key")
    openssl(f"req -new -key {folder}/{name}.key -subj {SUBJECTS[name]} -out {folder}/{name}.csr")
    extensions = "extendedKeyUsage=serverAuth,clientAuth\nkeyUsage=critical,digitalSignature\n"
    if name in ALTERNATIVE_NAMES:
        extensions += f"subjectAltName={ALTERNATIVE_NAMES[name]}\n"
    (folder / f"{name}.ext").write_text(extensions)
    openssl(
        f"x509 -req -in {folder}/{name}.csr -CA {folder}/ca.crt -CAkey {folder}/ca.key -CAcreateserial -days {DAYS} "
        f"-extfile {folder}/{name}.ext -out {folder}/{name}.crt"
    )


def new_key(path: Path) -> None:
    openssl(f"ecparam -name prime256v1 -genkey -noout -out {path}")
    path.chmod(0o600)


def write_kubeconfig(folder: Path, name: str) -> None:
    def data(file: str) -> str:
        return base64.b64encode((folder / file).read_bytes()).decode()

    server = {"server": f"https://{addresses.NODE_IP}:6443", "certificate-authority-data": data("ca.crt")}
    user = {"client-certificate-data": data(f"{name}.crt"), "client-key-data": data(f"{name}.key")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "simplerl", "cluster": server}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "simplerl", "context": {"cluster": "simplerl", "user": name}}],
        "current-context": "simplerl",
    }
    path = folder / f"{name}.kubeconfig"
    path.write_text(json.dumps(document, indent=1) + "\n")  # JSON is YAML
    path.chmod(0o600)


def openssl(arguments: str) -> None:
    commands.run(["openssl", *arguments.split()], "making the cluster's certificates")
