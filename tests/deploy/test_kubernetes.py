"""The Kubernetes manifest, against the schemas and against the product."""

from __future__ import annotations

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from flue_grpc.limits import DRAIN_SECONDS

DIRECTORY = Path(__file__).parents[2] / "deploy" / "kubernetes"
MANIFESTS = list(yaml.safe_load_all((DIRECTORY / "flue-grpc.yaml").read_text()))


@pytest.fixture
def pod():
    (deployment,) = (m for m in MANIFESTS if m["kind"] == "Deployment")
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (
        1,
        {"type": "Recreate"},
    )
    return deployment["spec"]["template"]["spec"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["kind"])
def test_the_schemas_allow_it(manifest):
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_no_container_can_change_its_root_or_gain_rights(pod):
    assert pod["securityContext"]["runAsNonRoot"]
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]


def test_the_sidecar_and_the_server_meet_at_one_socket(pod):
    server, envoy = pod["containers"]
    (listen,) = (e["value"] for e in server["env"] if e["name"] == "FLUE_GRPC_LISTEN")
    path = listen.removeprefix("unix:")
    assert f"pipe: {{ path: {path} }}" in (DIRECTORY / "envoy.yaml").read_text()
    for container in (server, envoy):
        mounts = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
        assert mounts["/run/flue-grpc"] == "socket"


def test_the_probes_ask_for_services_that_there_are(pod):
    server = pod["containers"][0]
    assert server["startupProbe"]["grpc"] == {"port": 8081}
    assert server["readinessProbe"]["grpc"] == {"port": 8081}
    assert server["livenessProbe"]["grpc"] == {
        "port": 8081,
        "service": "flue.agentindex.v1.AgentIndex",
    }


def test_the_drain_has_its_time(pod):
    assert pod["terminationGracePeriodSeconds"] > 2 * DRAIN_SECONDS


def test_every_mount_has_its_volume(pod):
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounted = {m["name"] for container in pod["containers"] for m in container["volumeMounts"]}
    assert mounted == volumes
