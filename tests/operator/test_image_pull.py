"""What an image's pull fails of, as kubelet and containerd say it and as the job says it."""

from dataclasses import replace

import pytest
from tests.operator.observations import CLUSTER, NOW, pod, seen, started

from simplerl_operator.decide.rules import decide
from simplerl_operator.observe.pods import Waiting

HUB = "docker.io/library/trainer:1"
OWN = "registry.example:5000/team/trainer:1"
UNPACK = f'failed to pull and unpack image "{OWN}": failed to resolve reference "{OWN}": '
HEAD = 'failed to do request: Head "https://registry.example:5000/v2/team/trainer/manifests/1": '
TOKEN = (
    "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to "
    "https://registry.example:5000/token?scope=repository%3Ateam%2Ftrainer%3Apull&service=registry.example: "
    "401 Unauthorized"
)
LIMIT = (
    "toomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit"
)
BLOB = "https://registry-1.docker.io/v2/library/trainer/manifests/sha256:0c1d"

SAID: list[tuple[str, str, str, str, str]] = [
    (
        "not found", OWN, "ErrImagePull",
        f"rpc error: code = NotFound desc = {UNPACK}{OWN}: not found", "not found",
    ),
    (
        "not found, by the short name of the hub", "trainer:1", "ErrImagePull",
        f'failed to pull and unpack image "{HUB}": failed to resolve reference "{HUB}": {HUB}: not found', "not found",
    ),
    (
        "the back-off that goes on with it", OWN, "ImagePullBackOff",
        f'Back-off pulling image "{OWN}": ErrImagePull: rpc error: code = NotFound desc = {UNPACK}{OWN}: not found',
        "not found",
    ),
    (
        "by digest", f"{OWN}@sha256:0c1d", "ErrImagePull",
        f'failed to pull and unpack image "{OWN}@sha256:0c1d": failed to resolve reference "{OWN}@sha256:0c1d": '
        f"{OWN}@sha256:0c1d: not found", "not found",
    ),
    (
        "no credentials", OWN, "ErrImagePull",
        f"{UNPACK}pull access denied, repository does not exist or may require authorization: authorization failed: "
        "no basic auth credentials",
        "pull access denied, repository does not exist or may require authorization: authorization failed: "
        "no basic auth credentials",
    ),
    (
        "refused credentials", OWN, "ErrImagePull", f"{UNPACK}{TOKEN}",
        "unexpected status from GET request to https://registry.example:5000/token?scope=repository%3Ateam%2Ftrainer"
        "%3Apull&service=registry.example: 401 Unauthorized",
    ),
    (
        "a registry that nobody knows", OWN, "ErrImagePull",
        f"{UNPACK}{HEAD}dial tcp: lookup registry.example on 10.96.0.10:53: no such host",
        "lookup registry.example on 10.96.0.10:53: no such host",
    ),
    (
        "a registry that does not answer", OWN, "ErrImagePull", f"{UNPACK}{HEAD}dial tcp 192.0.2.7:5000: i/o timeout",
        "dial tcp 192.0.2.7:5000: i/o timeout",
    ),
    (
        "a certificate of nobody", OWN, "ErrImagePull",
        f"{UNPACK}{HEAD}tls: failed to verify certificate: x509: certificate signed by unknown authority",
        "tls: failed to verify certificate: x509: certificate signed by unknown authority",
    ),
    (
        "no TLS at all", OWN, "ErrImagePull", f"{UNPACK}{HEAD}http: server gave HTTP response to HTTPS client",
        "http: server gave HTTP response to HTTPS client",
    ),
    (
        "too many pulls", "trainer:1", "ErrImagePull",
        f'failed to pull and unpack image "{HUB}": failed to copy: httpReadSeeker: failed open: unexpected status code '
        f"{BLOB}: 429 Too Many Requests - Server message: {LIMIT}",
        f"unexpected status code {BLOB}: 429 Too Many Requests - Server message: {LIMIT}",
    ),
    (
        "a name that is none", "Trainer:1", "InvalidImageName",
        'Failed to apply default image tag "Trainer:1": couldn\'t parse image name "Trainer:1": invalid reference '
        "format: repository name (library/Trainer) must be lowercase",
        "invalid reference format: repository name (library/Trainer) must be lowercase",
    ),
    (
        "one that must be there already", OWN, "ErrImageNeverPull",
        f'Container image "{OWN}" is not present with pull policy of Never',
        "it is not on the node, and the pull policy is Never",
    ),
    (
        "one of another architecture", OWN, "ErrImagePull",
        f'failed to pull and unpack image "{OWN}": no match for platform in manifest: not found',
        "no match for platform in manifest: not found",
    ),
    (
        "a full disk", OWN, "ErrImagePull",
        f'failed to pull and unpack image "{OWN}": failed to extract layer sha256:0c1d: write /var/lib/x: no space '
        "left on device: unknown",
        "failed to extract layer sha256:0c1d: write /var/lib/x: no space left on device: unknown",
    ),
    (
        "a back-off whose error nobody saw", OWN, "ImagePullBackOff", f'Back-off pulling image "{OWN}"',
        "kubelet waits before it tries again",
    ),
    ("another runtime's words", OWN, "ErrImagePull", "unauthorized: access denied", "unauthorized: access denied"),
    ("a chain cut short", OWN, "ErrImagePull", f'failed to pull image "{OWN}": ', f'failed to pull image "{OWN}":'),
    ("no words", OWN, "RegistryUnavailable", "", "RegistryUnavailable"),
]  # fmt: skip


@pytest.mark.parametrize(("image", "reason", "said", "why"), [s[1:] for s in SAID], ids=[s[0] for s in SAID])
def test_an_image_that_cannot_be_pulled_is_told_once(image: str, reason: str, said: str, why: str) -> None:
    head = pod("head", phase="Pending", ready=False)
    waits = replace(head, waiting=(Waiting("ray-head", reason, said, image),))
    decision = decide(seen(started(), pods=(waits,)), NOW)
    assert decision.reason == "ImagePullFailed"
    assert decision.message == f"head pod {CLUSTER}-head: image {image} cannot be pulled: {why}"
