//! Files of the pages. Their targets have a hash, so browsers keep them until they change.

use std::sync::LazyLock;

use super::http::{CSS, Response, SCRIPT, SVG};
use crate::map::{PAGE_RULES, PICTURE_RULES};
use crate::report::STYLE;

/// Returns a file by its name.
pub(super) fn find(name: &str) -> Option<Response> {
    Some(match name {
        "style.css" => Response::fixed(CSS, SHEET.as_bytes()),
        "app.js" => Response::fixed(SCRIPT, APP.as_bytes()),
        "uplot.js" => Response::fixed(SCRIPT, UPLOT.as_bytes()),
        "icon.svg" => Response::fixed(SVG, ICON.as_bytes()),
        _ => return None,
    })
}

/// Returns the target of a file: its name with a hash of all files.
pub(super) fn target(name: &str) -> String {
    format!("{name}?{:016x}", *HASH)
}

/// The style sheet: that of all reports, that of maps, that of uPlot, and the dashboard's own.
static SHEET: LazyLock<String> =
    LazyLock::new(|| [STYLE, PICTURE_RULES, PAGE_RULES, UPLOT_SHEET, OWN_SHEET].concat());
static HASH: LazyLock<u64> = LazyLock::new(|| {
    let all = [&SHEET, APP, UPLOT, ICON];
    // FNV-1a; a change of a file must change the hash, no more.
    let bytes = all.iter().flat_map(|text| text.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
});

/// Rules of the dashboard alone.
pub(super) const OWN_SHEET: &str = include_str!("assets/dashboard.css");
const APP: &str = include_str!("assets/dashboard.js");
const UPLOT: &str = include_str!("assets/uPlot.iife.min.js");
const UPLOT_SHEET: &str = include_str!("assets/uPlot.min.css");
const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\">\
    <rect width=\"16\" height=\"16\" rx=\"3\" fill=\"#0b62c4\"/>\
    <path d=\"M3 12V8M6.5 12V4M10 12V7M13 12V9.5\" stroke=\"#fff\" stroke-width=\"2\"/></svg>\n";
