"""The parts of objects that have a path of their own: status, scale, binding, eviction, …"""
