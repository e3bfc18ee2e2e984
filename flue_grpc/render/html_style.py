"""The style of an exported transcript; its hash stands in the page's policy."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: .85rem; font-weight: normal; margin: 0 0 .3rem; opacity: .8; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .9rem; }
dt { opacity: .7; }
dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: .8rem 0; font-size: .85rem; }
svg { display: block; width: 100%; height: 12px; background: var(--soft); border-radius: 3px; }
figcaption span { margin-left: .8rem; }
figcaption span::before { content: "■ "; }
.input { color: #3b82f6; fill: #3b82f6; }
.output { color: #22a55b; fill: #22a55b; }
.cache_read { color: #8b8fa3; fill: #8b8fa3; }
.cache_write { color: #d9902f; fill: #d9902f; }
section { border-top: 1px solid var(--line); padding: .6rem 0 .6rem .8rem; }
section.user.text { border-left: 3px solid #3b82f6; }
section.assistant.text { border-left: 3px solid #22a55b; }
section.error summary b { color: #d1383d; }
pre { margin: 0; font: inherit; white-space: pre-wrap; overflow-wrap: anywhere;
  unicode-bidi: isolate; }
details pre { font: .85rem/1.45 ui-monospace, monospace; background: var(--soft);
  padding: .6rem; border-radius: 4px; margin-top: .4rem; }
summary { cursor: pointer; font-size: .9rem; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
summary code { opacity: .75; unicode-bidi: isolate; }
summary i, .note { opacity: .6; font-size: .8rem; }
@media print { details > *:not(summary) { display: block; } }
"""
