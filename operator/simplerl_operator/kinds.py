"""The kinds of objects that the operator reads or writes, and their paths in the API."""

from dataclasses import dataclass

from simplerl_api import GROUP, KIND, PLURAL, VERSION


@dataclass(frozen=True)
class Kind:
    """A kind of namespaced object."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of a collection (of all namespaces where None), an object or its subresource."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/".join(parts)


JOB = Kind(GROUP, VERSION, PLURAL, KIND)
RAY_CLUSTER = Kind("ray.io", "v1", "rayclusters", "RayCluster")
POD = Kind("", "v1", "pods", "Pod")
SECRET = Kind("", "v1", "secrets", "Secret")
CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
CLAIM = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
NODE = Kind("", "v1", "nodes", "Node")
EVENT = Kind("", "v1", "events", "Event")
WORKLOAD = Kind("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease")
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
