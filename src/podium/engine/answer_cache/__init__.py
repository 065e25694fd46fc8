"""Caches the answers of plugins from pod to pod, and asks again only about rows that changed.

`store` has an entry per profile and signature, which it brings up to date and decides by; `filters` and `scores` hold
what plugins answered; `changed_rows` is what they are made of.
"""
