//! Links of the program under test: whether this machine can have any.
//!
//! They need root, /dev/net/tun and the `ip` command.

use crate::skip::skip;
use crate::{peer, run};

/// The exit status if links are not possible.
pub const NO_LINK: i32 = 125;

/// Returns whether links are possible, by making one; prints the reason if they are not.
///
/// # Panics
/// If a required link cannot be made.
#[must_use]
pub fn possible() -> bool {
    if !peer::is_firstbyte() {
        return false;
    }
    let tried = run(["via", "0ms", "--", "true"]);
    if tried.code == 0 {
        return true;
    }
    let known = [
        "needs root",
        "/dev/net/tun",
        "TUN devices",
        "ip command",
        "mounts of its own",
    ];
    let reason = known.iter().any(|reason| tried.stderr.contains(reason));
    assert!(tried.code == NO_LINK && reason, "{}", tried.stderr);
    skipped(&tried.stderr)
}

/// Reports a test without a link as skipped; returns false.
pub fn skipped(why: &str) -> bool {
    skip(&format!("there is no link here: {why}"));
    false
}
