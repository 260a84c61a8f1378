//! Colours of pictures: phases, parts of waits and moments, in light, dark and on paper.
//!
//! What differs in colour differs in place, shape or text as well, so that nobody has to see colours.

/// Rules of a picture, for a style element of its own or that of a page.
pub(super) const STYLE: &str = "
.waterfall { --ground: #fff; --stripe: #f3f5f8; --ink: #1b1f24; --faint: #57606a; --rule: #d0d7de; --bad: #b3261e;
  --queued: #8b949e; --dns: #0a7f7f; --connect: #c2600a; --tls: #8250df; --send: #57606a; --wait: #1a7f37;
  --receive: #0b62c4; --pale: #a9cbf0; --trip: #e0c341; --server: #06330f; --rest: #d6008a; --stall: #cf222e;
  --m0: #1a7f37; --m1: #8a4600; --m2: #b3480a; --m3: #a40e60; --m4: #6b5900; --m5: #0b62c4;
  display: block; font: 11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; }
@media screen and (prefers-color-scheme: dark) { .waterfall { --ground: #0f1419; --stripe: #171d24; --ink: #e6e9ed;
  --faint: #9aa4af; --rule: #39424d; --bad: #ff8a80; --queued: #7d8792; --dns: #4fd1c5; --connect: #ff9d5c; --tls: #c4a2ff;
  --send: #9aa4af; --wait: #3fb950; --receive: #6cb2ff; --pale: #2c4f78; --trip: #f3dd7a; --server: #e2ffe9; --rest: #ff8ac2;
  --stall: #ff6b6b; --m0: #3fb950; --m1: #e0a36b; --m2: #ff9d5c; --m3: #ff8ac2; --m4: #e3cf5b; --m5: #6cb2ff; } }
.waterfall text { fill: var(--ink); white-space: pre; } .waterfall .faint { fill: var(--faint); }
.waterfall .name { font-size: 14px; font-weight: 600; } .waterfall .bad { fill: var(--bad); }
.waterfall .page, .waterfall .plain { fill: var(--ground); } .waterfall .hit { fill: transparent; } .waterfall .stripe { fill: var(--stripe); }
.waterfall .figure { paint-order: stroke; stroke: var(--ground); stroke-width: 3px; stroke-linejoin: round; }
.waterfall .grid { stroke: var(--rule); } .waterfall .queued { fill: var(--queued); } .waterfall .dns { fill: var(--dns); }
.waterfall .connect { fill: var(--connect); } .waterfall .tls { fill: var(--tls); } .waterfall .send { fill: var(--send); }
.waterfall .wait { fill: var(--wait); } .waterfall .receive, .waterfall .piece { fill: var(--receive); }
.waterfall .pale { fill: var(--pale); } .waterfall .trip { fill: var(--trip); } .waterfall .server { fill: var(--server); }
.waterfall .rest { fill: var(--rest); } .waterfall .stall { fill: none; stroke: var(--stall); stroke-width: 2px; }
.waterfall .cause { fill: var(--bad); }
.waterfall .m0 { stroke: var(--m0); } .waterfall .m1 { stroke: var(--m1); stroke-dasharray: 6 3; }
.waterfall .m2 { stroke: var(--m2); stroke-dasharray: 2 2; } .waterfall .m3 { stroke: var(--m3); stroke-dasharray: 10 3 2 3; }
.waterfall .m4 { stroke: var(--m4); stroke-dasharray: 4 4; } .waterfall .m5 { stroke: var(--m5); }
.waterfall .m0, .waterfall .m1, .waterfall .m2, .waterfall .m3, .waterfall .m4, .waterfall .m5 { stroke-width: 1.5px; }
.waterfall .old line { stroke-opacity: .7; stroke-dasharray: 3 5; } .waterfall .new line { stroke-dasharray: none; }
@media print { .waterfall { print-color-adjust: exact; } }
";
