//! Colours of pictures: phases, parts of waits and moments, in light, dark and on paper.
//!
//! Marks of different colours also differ in place, shape or text, so the picture is readable without colours. Light colours are
//! presentation attributes of each element, because file managers, librsvg and Inkscape do not support CSS variables. The style
//! has the dark colours, which override them in browsers.

/// Presentation attributes of an element of this class in light, with a space before each; empty for an unknown class.
pub(super) fn attributes(class: &str) -> &'static str {
    match class {
        "page" | "plain" => " fill=\"#fff\"",
        // Invisible, but with a tooltip.
        "hit" => " fill-opacity=\"0\"",
        "stripe" => " fill=\"#f3f5f8\"",
        "ink" | "figure" => " fill=\"#1b1f24\"",
        "name" => " fill=\"#1b1f24\" font-size=\"14\" font-weight=\"600\"",
        "faint" | "send" => " fill=\"#57606a\"",
        "bad" | "figure cause" => " fill=\"#b3261e\"",
        "queued" => " fill=\"#8b949e\"",
        "dns" => " fill=\"#0a7f7f\"",
        "connect" => " fill=\"#c2600a\"",
        "tls" => " fill=\"#8250df\"",
        "wait" => " fill=\"#1a7f37\"",
        "receive" | "piece" => " fill=\"#0b62c4\"",
        "pale" => " fill=\"#a9cbf0\"",
        "trip" => " fill=\"#e0c341\"",
        "server" => " fill=\"#06330f\"",
        "rest" => " fill=\"#d6008a\"",
        "stall" => " fill=\"none\" stroke=\"#cf222e\" stroke-width=\"2\"",
        "grid" => " stroke=\"#d0d7de\"",
        "m0" => " stroke=\"#1a7f37\" stroke-width=\"1.5\"",
        "m1" => " stroke=\"#8a4600\" stroke-width=\"1.5\" stroke-dasharray=\"6 3\"",
        "m2" => " stroke=\"#b3480a\" stroke-width=\"1.5\" stroke-dasharray=\"2 2\"",
        "m3" => " stroke=\"#a40e60\" stroke-width=\"1.5\" stroke-dasharray=\"10 3 2 3\"",
        "m4" => " stroke=\"#6b5900\" stroke-width=\"1.5\" stroke-dasharray=\"4 4\"",
        "m5" => " stroke=\"#0b62c4\" stroke-width=\"1.5\"",
        _ => "",
    }
}

/// Presentation attributes of the whole picture.
pub(super) const FONT: &str =
    "font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"11\"";

/// Rules of a picture, for a style element of its own or that of a page. The halo of figures needs `paint-order`: without it the
/// halo would cover the text.
pub(super) const STYLE: &str = "
.waterfall { display: block; font: 11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; }
.waterfall text { white-space: pre; } .waterfall .name { font-size: 14px; font-weight: 600; }
@supports (paint-order: stroke) { .waterfall .figure { paint-order: stroke; stroke: #fff; stroke-width: 3px;
  stroke-linejoin: round; } }
.waterfall .old line { stroke-opacity: .7; stroke-dasharray: 3 5; } .waterfall .new line { stroke-dasharray: none; }
@media screen and (prefers-color-scheme: dark) {
.waterfall { --ground: #0f1419; --stripe: #171d24; --ink: #e6e9ed; --faint: #9aa4af; --rule: #39424d; --bad: #ff8a80;
  --queued: #7d8792; --dns: #4fd1c5; --connect: #ff9d5c; --tls: #c4a2ff; --send: #9aa4af; --wait: #3fb950;
  --receive: #6cb2ff; --pale: #2c4f78; --trip: #f3dd7a; --server: #e2ffe9; --rest: #ff8ac2; --stall: #ff6b6b;
  --m0: #3fb950; --m1: #e0a36b; --m2: #ff9d5c; --m3: #ff8ac2; --m4: #e3cf5b; --m5: #6cb2ff; }
.waterfall text { fill: var(--ink); } .waterfall .faint { fill: var(--faint); }
.waterfall .bad, .waterfall .cause { fill: var(--bad); } .waterfall .figure { stroke: var(--ground); }
.waterfall .page, .waterfall .plain { fill: var(--ground); } .waterfall .stripe { fill: var(--stripe); }
.waterfall .grid { stroke: var(--rule); } .waterfall .queued { fill: var(--queued); } .waterfall .dns { fill: var(--dns); }
.waterfall .connect { fill: var(--connect); } .waterfall .tls { fill: var(--tls); } .waterfall .send { fill: var(--send); }
.waterfall .wait { fill: var(--wait); } .waterfall .receive, .waterfall .piece { fill: var(--receive); }
.waterfall .pale { fill: var(--pale); } .waterfall .trip { fill: var(--trip); } .waterfall .server { fill: var(--server); }
.waterfall .rest { fill: var(--rest); } .waterfall .stall { stroke: var(--stall); }
.waterfall .m0 { stroke: var(--m0); } .waterfall .m1 { stroke: var(--m1); } .waterfall .m2 { stroke: var(--m2); }
.waterfall .m3 { stroke: var(--m3); } .waterfall .m4 { stroke: var(--m4); } .waterfall .m5 { stroke: var(--m5); } }
@media print { .waterfall { print-color-adjust: exact; } }
";
