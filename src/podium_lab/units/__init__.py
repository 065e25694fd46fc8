"""Work that is cut into units: each is run once, anywhere, and leaves one result in a store.

    unit    what is run, with which profile, seeds, inputs and code        unit.py
    store   results by the hash of their unit, inputs by their content     store.py
    engine  processes of this machine, Ray, or Jobs of Kubernetes          processes.py, ray_tasks.py, jobs.py

Start reading with `run.py`.
"""

from podium_lab.units.store import UnitStore, open_store
from podium_lab.units.unit import StoreError, Unit, UnitError, code_version

__all__ = ["StoreError", "Unit", "UnitError", "UnitStore", "code_version", "open_store"]
