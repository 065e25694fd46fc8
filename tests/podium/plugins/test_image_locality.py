from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.plugins.image_locality import ImageLocality, with_tag
from tests.podium.plugins.ask import scores
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

MIB = 1024 * 1024


def pod_of(*images: str, init: tuple[str, ...] = (), volumes: tuple[str, ...] = ()) -> Any:
    return make_pod(
        spec={
            "containers": [{"name": f"c{i}", "image": image} for i, image in enumerate(images)],
            "initContainers": [{"name": f"i{i}", "image": image} for i, image in enumerate(init)],
            "volumes": [{"name": f"v{i}", "image": {"reference": image}} for i, image in enumerate(volumes)],
        }
    )


def scored(nodes: dict[str, dict[str, int]], pod: Any) -> dict[str, int]:
    cluster = make_cluster([make_node(name, images=images) for name, images in nodes.items()])
    return scores(make_plugin(ImageLocality, cluster), pod, cluster)


def test_an_image_of_300_mib_on_two_of_four_nodes_gives_12() -> None:
    image = {"web:1": 300 * MIB}
    found = scored({"a": image, "b": image, "c": {}, "d": {}}, pod_of("web:1"))
    assert found == {"a": 12, "b": 12, "c": 0, "d": 0}


def test_images_that_no_node_has_give_0() -> None:
    assert scored({"a": {"other:1": 900 * MIB}, "b": {}}, pod_of("web:1")) == {"a": 0, "b": 0}


def test_less_than_23_mib_gives_0_and_more_than_1000_mib_per_container_gives_100() -> None:
    assert scored({"a": {"web:1": 23 * MIB}}, pod_of("web:1")) == {"a": 0}
    assert scored({"a": {"web:1": 5000 * MIB}}, pod_of("web:1")) == {"a": 100}
    assert scored({"a": {"web:1": 1000 * MIB}}, pod_of("web:1", "db:1")) == {"a": 100 * 977 // 1977}


def test_init_containers_and_image_volumes_count_in_the_sum_and_its_limit() -> None:
    images = {"web:1": 200 * MIB, "setup:1": 300 * MIB, "model:1": 400 * MIB}
    pod = pod_of("web:1", init=("setup:1",), volumes=("model:1",))
    assert scored({"a": images}, pod) == {"a": 100 * (900 - 23) // (3000 - 23)}


def test_an_image_used_twice_counts_twice() -> None:
    assert scored({"a": {"web:1": 500 * MIB}}, pod_of("web:1", "web:1")) == {"a": 100 * (1000 - 23) // (2000 - 23)}


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("web", "web:latest"),
        ("web:1", "web:1"),
        ("registry:5000/web", "registry:5000/web:latest"),
        ("registry:5000/web:1", "registry:5000/web:1"),
        ("web@sha256:abc", "web@sha256:abc"),
        ("", ":latest"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(image: str, name: str) -> None:
    assert with_tag(image) == name


IMAGES = st.dictionaries(st.sampled_from(["a:1", "b:1", "c:1"]), st.integers(0, 3000 * MIB), max_size=3)


@given(
    st.lists(IMAGES, min_size=1, max_size=5), st.lists(st.sampled_from(["a:1", "b:1", "d:1"]), min_size=1, max_size=3)
)
def test_scores_follow_the_formula(nodes: list[dict[str, int]], wanted: list[str]) -> None:
    size: dict[str, int] = {}
    for images in nodes:
        for name, reported in images.items():
            size.setdefault(name, reported)  # the first node to report an image decides its size

    def expected(images: dict[str, int]) -> int:
        total = 0
        for name in wanted:
            if name in images:
                spread = sum(name in other for other in nodes) / len(nodes)
                total += int(float(size[name]) * spread)
        most = 1000 * MIB * len(wanted)
        return 100 * (min(max(total, 23 * MIB), most) - 23 * MIB) // (most - 23 * MIB)

    found = scored({f"n{i}": images for i, images in enumerate(nodes)}, pod_of(*wanted))
    assert found == {f"n{i}": expected(images) for i, images in enumerate(nodes)}


def test_the_answer_key_moves_when_one_of_the_pods_images_spreads_or_a_node_comes() -> None:
    cluster = make_cluster([make_node("a", images={"web:1": MIB}), make_node("b")])
    plugin = make_plugin(ImageLocality, cluster)
    pod = pod_of("web:1", "db:1")
    before = plugin.answer_key(pod)
    cluster.set_node(make_node("b", images={"other:1": MIB}))
    assert plugin.answer_key(pod) == before
    cluster.set_node(make_node("b", images={"web:1": MIB}))
    spread = plugin.answer_key(pod)
    assert spread != before
    cluster.set_node(make_node("c"))
    assert plugin.answer_key(pod) not in (before, spread)


def test_the_answer_key_tells_which_image_has_spread_how_far() -> None:
    cluster = make_cluster([make_node("n1", images={"b:1": MIB, "c:1": MIB}), make_node("n2", images={"c:1": MIB})])
    plugin = make_plugin(ImageLocality, cluster)
    pod = pod_of("a:1", "b:1", "c:1")
    before = plugin.answer_key(pod)
    cluster.set_node(make_node("n1", images={"b:1": MIB, "a:1": MIB}))
    cluster.set_node(make_node("n2", images={"b:1": MIB}))
    assert plugin.answer_key(pod) != before


def test_for_images_that_nobody_has_the_answer_key_stands_still() -> None:
    cluster = make_cluster([make_node("a")])
    plugin = make_plugin(ImageLocality, cluster)
    before = plugin.answer_key(pod_of("web:1"))
    cluster.set_node(make_node("b"))
    assert plugin.answer_key(pod_of("web:1")) == before
    cluster.set_node(make_node("b", images={"web:1": MIB}))
    assert plugin.answer_key(pod_of("web:1")) != before
    assert before not in ((), None), "an image may come any time, so the empty promise cannot be made"


def test_a_node_that_goes_takes_its_images_along() -> None:
    image = {"web:1": 400 * MIB}
    cluster = make_cluster([make_node("a", images=image), make_node("b", images=image)])
    plugin = make_plugin(ImageLocality, cluster)
    assert scores(plugin, pod_of("web:1"), cluster) == {"a": 100 * 377 // 977, "b": 100 * 377 // 977}
    cluster.remove_node("b")
    assert scores(plugin, pod_of("web:1"), cluster) == {"a": 100 * 377 // 977}
    cluster.set_node(make_node("c"))
    assert scores(plugin, pod_of("web:1"), cluster) == {"a": 100 * 177 // 977, "c": 0}
