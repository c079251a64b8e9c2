"""The style of the report: light or dark as the reader's system says, and fit for print."""

from harness.report.markup import Markup

CSS = Markup("""
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --card: #f6f8fa }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171a; --ink: #e6e8ea; --soft: #a3abb3; --line: #3a4149; --card: #1d2126 }
}
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem; max-width: 60rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.6rem; margin: 0 } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
.question { color: var(--soft); margin: .25rem 0 1rem }
.headline { font-size: 1.15rem; font-weight: 600; padding: .75rem 1rem; background: var(--card); border-radius: .5rem }
figure { margin: 1rem 0 } figcaption, caption { color: var(--soft); font-size: .9rem; text-align: left }
svg { width: 100%; height: auto } svg text { font-family: system-ui, sans-serif !important }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
.right { text-align: right; white-space: nowrap } .best { font-weight: 700 }
td, dd, p, li, pre { overflow-wrap: anywhere }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem }
dt { color: var(--soft) } dd { margin: 0 }
.bar { display: flex; height: 1.25rem; border: 1px solid var(--line); border-radius: .25rem; overflow: hidden }
.bar span { min-width: 1px }
.setup { background: #56b4e9 } .working { background: #0072b2 } .paused { background: #f0e442 }
.judging { background: #e69f00 } .down { background: #d55e00 } .closing { background: #808890 }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border: 1px solid var(--line) }
details { border-bottom: 1px solid var(--line); padding: .3rem 0 } summary { cursor: pointer }
.said { white-space: pre-wrap; background: var(--card); padding: .5rem .75rem; border-radius: .25rem; margin: .35rem 0 }
footer { margin-top: 2rem; color: var(--soft); font-size: .9rem }
@media print { body { max-width: none } details:not([open]) > * { display: block } }
""")
