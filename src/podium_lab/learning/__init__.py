"""Trains and judges placement scores: a fast copy of the simulation, evolution of weights, paired comparisons, a bound.

What a trained score needs to run is elsewhere (`podium_plugins.gpu`, `podium_lab.learned`) and uses NumPy alone; this
room needs the extra `podium[learn]`.
"""
