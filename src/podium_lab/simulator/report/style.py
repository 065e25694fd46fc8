"""Styles the report: one sheet, light and dark, nothing fetched."""

LIGHT = ("#2a78d6", "#eb6834", "#1baf7a", "#4a3aa7", "#eda100", "#e87ba4", "#008300", "#e34948")
DARK = ("#3987e5", "#d95926", "#199e70", "#9085e9", "#c98500", "#d55181", "#3fa34d", "#e66767")
"""The colours of profiles, in their order; different also to people who do not see all colours."""


def _variables(colours: tuple[str, ...], **others: str) -> str:
    series = [f"--s{i}: {colour};" for i, colour in enumerate(colours)]
    return " ".join([*series, *(f"--{name}: {value};" for name, value in others.items())])


_LIGHT = _variables(LIGHT, page="#fcfcfb", ink="#1a1a19", soft="#5c5b57", line="#dddcd8", box="#f3f2ef")
_DARK = _variables(DARK, page="#1a1a19", ink="#f1f0ec", soft="#a9a8a2", line="#3d3c39", box="#262624")

SHEET = f"""
:root {{ {_LIGHT} color-scheme: light dark; }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
body {{ margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.5rem; margin: 0 0 .25rem; }}
h2 {{ font-size: 1.1rem; margin: 2rem 0 .5rem; }}
p {{ color: var(--soft); margin: .25rem 0 .75rem; max-width: 50rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }}
th, td {{ padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }}
.text {{ text-align: left; }}
th {{ color: var(--soft); font-weight: 600; }}
.scroll {{ overflow-x: auto; }}
.plots {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); gap: 1.25rem; }}
figure {{ margin: 0; background: var(--box); border-radius: 8px; padding: .8rem 1rem; }}
figcaption {{ font-weight: 600; font-size: 14px; }}
figcaption small {{ display: block; font-weight: 400; color: var(--soft); }}
svg {{ width: 100%; height: auto; display: block; }}
svg text {{ fill: var(--soft); font: 12px system-ui, sans-serif; }}
svg .grid {{ stroke: var(--line); stroke-width: 1; }}
svg .name {{ fill: var(--ink); }}
.legend {{ display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .5rem 0 1rem; font-size: 14px; }}
.legend i {{ display: inline-block; width: .8rem; height: .8rem; border-radius: 3px; margin-right: .35rem; }}
pre {{ overflow-x: auto; background: var(--box); border-radius: 8px; padding: .8rem 1rem; font-size: 13px; }}
@media (max-width: 30rem) {{ .plots {{ grid-template-columns: 1fr; }} }}
"""
