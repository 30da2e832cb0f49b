"""etcd, the API server, the controller manager and the scheduler."""

from . import addresses, commands, node, places, programs

CERTIFICATES = "/etc/kubernetes"  # as the node sees it
ETCD = "http://127.0.0.1:2379"
LIST_RATE = ("--kube-api-qps=200", "--kube-api-burst=400")


def start_etcd() -> None:
    peer = "http://127.0.0.1:2380"
    node.start("etcd", [
        "etcd", f"--name={addresses.NODE}", "--data-dir=/var/lib/etcd",
        f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}",
        f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster={addresses.NODE}={peer}",
        "--unsafe-no-fsync",  # the data is thrown away with the cluster
        "--quota-backend-bytes=4294967296", "--log-level=warn",
    ])  # fmt: skip


def start_api_server() -> None:
    at = CERTIFICATES
    node.start("kube-apiserver", [
        "kube-apiserver", f"--advertise-address={addresses.NODE_IP}", "--secure-port=6443", f"--etcd-servers={ETCD}",
        f"--service-cluster-ip-range={addresses.SERVICE_NET}",
        "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--anonymous-auth=false",
        "--allow-privileged=true",
        f"--client-ca-file={at}/ca.crt",
        f"--tls-cert-file={at}/apiserver.crt", f"--tls-private-key-file={at}/apiserver.key",
        f"--kubelet-certificate-authority={at}/ca.crt", f"--kubelet-client-certificate={at}/apiserver-kubelet.crt",
        f"--kubelet-client-key={at}/apiserver-kubelet.key", "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={at}/sa.pub", f"--service-account-signing-key-file={at}/sa.key",
        f"--requestheader-client-ca-file={at}/ca.crt", "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={at}/front-proxy.crt", f"--proxy-client-key-file={at}/front-proxy.key",
        "--enable-aggregator-routing=true",
        f"--audit-policy-file={at}/audit-policy.yaml", "--audit-log-path=/var/log/audit/audit.log",
        "--audit-log-maxsize=64", "--audit-log-maxbackup=3",  # at most 256 MB
    ])  # fmt: skip


def wait_for_api_server() -> None:
    def ready() -> bool:
        if is_ready():
            return True
        start_api_server()  # one that was told to end before we came is there for a minute more, and then is not
        return False

    commands.wait_for("the API server", ready, 120, places.LOGS / "kube-apiserver.log")


def is_ready() -> bool:
    return commands.succeeds(kubectl("get", "--raw", "/readyz"))


def start_controllers() -> None:
    for name in ("controller-manager", "scheduler"):
        kubeconfig = f"{CERTIFICATES}/{name}.kubeconfig"
        command = [
            f"kube-{name}", f"--kubeconfig={kubeconfig}", f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}", "--leader-elect=false", *LIST_RATE,
        ]  # fmt: skip
        if name == "controller-manager":
            command += [
                "--use-service-account-credentials=true", f"--service-account-private-key-file={CERTIFICATES}/sa.key",
                f"--root-ca-file={CERTIFICATES}/ca.crt",
                f"--cluster-signing-cert-file={CERTIFICATES}/ca.crt",
                f"--cluster-signing-key-file={CERTIFICATES}/ca.key",
            ]  # fmt: skip
        node.start(f"kube-{name}", command)


def kubectl(*arguments: str) -> list[str]:
    return [str(programs.path("kubectl")), f"--kubeconfig={places.KUBECONFIG}", *arguments]
