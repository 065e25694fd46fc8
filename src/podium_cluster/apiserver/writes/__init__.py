"""Writes: create, update, patch, delete, bind, evict and scale, each a function of a WriteContext and of plain values.

A write goes the way it goes in kube-apiserver: fields are checked and defaulted, admission, what the server decides is
filled in, the kind's rules prepare and validate, and the store takes it with the next revision. Nothing here waits, so
every reader sees a write whole or not at all. Refusals are StatusErrors.
"""
