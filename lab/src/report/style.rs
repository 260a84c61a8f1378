//! Style of all report pages: colours of light, dark and paper, text, tables.
//!
//! A page appends its own rules. All text has a contrast of 4.5 to 1 or more (WCAG 2.2, 1.4.3).

/// Rules of every page.
pub(crate) const STYLE: &str = "
:root { --page: #fff; --text: #1b1f24; --soft: #57606a; --line: #d0d7de; --s0: #0b62c4; --s1: #b3480a; --s2: #1a7f37;
  --s3: #8250df; --s4: #a40e60; --s5: #6b5900; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1419; --text: #e6e9ed; --soft: #9aa4af; --line: #39424d;
  --s0: #6cb2ff; --s1: #ff9d5c; --s2: #6fd388; --s3: #c4a2ff; --s4: #ff8ac2; --s5: #e3cf5b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child { text-align: left; } th { font-weight: 600; }
.warning { border-left: .3rem solid var(--s1); padding-left: .7rem; }
footer, .key { color: var(--soft); font-size: .9rem; }
@media print { :root { --page: #fff; --text: #000; --soft: #333; --line: #999; --s0: #0b62c4; --s1: #b3480a; --s2: #1a7f37;
  --s3: #8250df; --s4: #a40e60; --s5: #6b5900; }
  section { break-inside: avoid; } .wide { overflow: visible; } table { font-size: .8rem; } }
";
