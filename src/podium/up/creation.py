"""Creates the objects of a workload in the API, and leaves those alone that are there already.

The custom resources that Podium's plugins schedule by are installed before, so that a workload may have some.
"""

from podium.apiserver.api import EmbeddedApi
from podium.apiserver.errors import StatusError
from podium.controllers.crds import definitions
from podium.up.errors import UpError
from podium.up.manifests import Manifest


def install_definitions(api: EmbeddedApi) -> None:
    """Have the API serve PodGroups, ElasticQuotas and the others (podium crds)."""
    create(api, list(definitions().values()))


def create(api: EmbeddedApi, workload: list[Manifest]) -> int:
    """How many objects were created; raises UpError with the API's words for one that is refused."""
    created = 0
    for manifest in workload:
        kind = api.kinds.by_kind(manifest["apiVersion"], manifest["kind"])
        name = (manifest.get("metadata") or {}).get("name", "")
        if kind is None:
            raise UpError(
                f"--workload: {manifest['kind']} {name}: this API has no such kind in version {manifest['apiVersion']}"
            )
        try:
            api.create(kind, manifest, field_validation="Strict", manager="podium-up")
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise UpError(f"--workload: {manifest['kind']} {name}: {error.message}") from None
        else:
            created += 1
    return created
