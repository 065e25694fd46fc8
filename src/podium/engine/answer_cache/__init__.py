"""Caches the answers of plugins from pod to pod, and asks again only about rows that changed.

`store` has an entry per profile and signature; `entry` brings one up to date and decides by it; `filters`, `scores` and
`failures` hold what plugins answered; `changed_rows` and `row_answers` are what they are made of.
"""
