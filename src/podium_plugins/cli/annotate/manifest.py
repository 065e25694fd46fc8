"""Prints the manifests that keep annotations fresh in a cluster (`podium annotate manifest`)."""

from enum import StrEnum
from typing import Annotated

import typer

from podium.cli.manifest_options import ImageOption, PlaceOption, print_manifest


class AnnotationSet(StrEnum):
    """Which annotations are written."""

    USAGE = "usage"
    ALLOCATION = "allocation"


def manifest(
    kind: Annotated[AnnotationSet, typer.Argument(metavar="usage|allocation", help="Which annotations.")],
    prometheus: Annotated[
        str, typer.Option("--prometheus", metavar="URL", help="Where Prometheus is, as seen from the cluster.")
    ] = "http://prometheus.monitoring:9090",
    namespace: PlaceOption = "kube-system",
    image: ImageOption = "",
) -> None:
    """Print what keeps annotations fresh in a cluster: an account, its rights, a Deployment.

    Example: podium annotate manifest usage --prometheus http://prometheus.monitoring:9090 | kubectl apply -f -
    """
    from podium.manifests.objects import IMAGE
    from podium_plugins.annotate.deployment import manifest as objects_of
    from podium_plugins.cli.annotate.usage import source_at

    source_at(prometheus)
    options = ["--prometheus", prometheus] if kind is AnnotationSet.USAGE else []
    print_manifest(objects_of(kind.value, options, namespace, image or IMAGE), image)
