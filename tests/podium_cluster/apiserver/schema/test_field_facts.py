"""The facts file is what the real server says today, and reads as what patches need."""

import json

from podium_cluster.apiserver.kinds import POD, built_in
from podium_cluster.apiserver.schema import schema_of
from podium_cluster.apiserver.schema.fields import facts_version, type_facts
from tools.testbed.build import KUBERNETES_VERSION
from tools.testbed.cluster import ControlPlane
from tools.testbed.field_facts import FACTS_PATH, OF_ALL_KINDS, field_facts


def test_the_facts_file_is_what_the_server_says(testbed_programs: None) -> None:
    with ControlPlane(**OF_ALL_KINDS) as plane:
        facts = field_facts(plane.client)
    assert json.loads(FACTS_PATH.read_text()) == facts, "write it anew with `python -m tools.testbed.field_facts`"


def test_the_facts_are_of_the_pinned_version_and_carry_no_texts() -> None:
    assert facts_version() == KUBERNETES_VERSION
    assert '"description"' not in FACTS_PATH.read_text().replace('"description":{', "")
    assert "io.k8s.api.core.v1.Pod" in type_facts()


def test_lists_are_identified_as_declared() -> None:
    spec = schema_of(POD).root.field("spec")
    assert spec is not None
    assert spec.form == "struct"
    assert spec.name == "PodSpec"
    containers, tolerations = spec.field("containers"), spec.field("tolerations")
    assert containers is not None
    assert tolerations is not None
    assert (containers.form, containers.keys, containers.atomic) == ("list", ("name",), False)
    assert (containers.strategies, containers.merge_key) == (("merge",), "name")
    assert (tolerations.form, tolerations.keys, tolerations.atomic) == ("list", (), True)
    assert containers.element is not None
    ports = containers.element.field("ports")
    assert ports is not None
    assert ports.element is not None
    assert ports.keys == ("containerPort", "protocol")
    protocol = ports.element.field("protocol")
    assert protocol is not None
    assert protocol.default == "TCP"


def test_sets_and_atomic_structs_are_told_apart() -> None:
    metadata = schema_of(POD).root.field("metadata")
    assert metadata is not None
    finalizers, labels = metadata.field("finalizers"), metadata.field("labels")
    assert finalizers is not None
    assert (finalizers.atomic, finalizers.keys) == (False, ())
    assert labels is not None
    assert (labels.form, labels.atomic) == ("map", False)
    spec = schema_of(built_in("apps/v1", "Deployment")).root.field("spec")
    assert spec is not None
    selector, strategy = spec.field("selector"), spec.field("strategy")
    assert selector is not None
    assert selector.atomic
    assert strategy is not None
    assert strategy.strategies == ("retainKeys",)


def test_an_unknown_field_has_no_type() -> None:
    assert schema_of(POD).root.field("nonsense") is None
