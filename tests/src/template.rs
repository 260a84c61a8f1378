//! Placeholders in the text of a test's configuration.

use std::fs;
use std::path::Path;

use crate::peer;
use crate::port::Port;

/// Puts the directory, the ports and the `user` line in their places.
pub(crate) fn expand(template: &str, dir: &Path, ports: &[Port]) -> String {
    let mut text = template.replace("%%DIR%%", &dir.display().to_string());
    text = text.replace("%%USER%%", &user_line());
    for (index, port) in ports.iter().enumerate() {
        text = text.replace(&placeholder(index + 1), &port.number().to_string());
    }
    text
}

/// The name of the `n`th port; the first has no number.
pub(crate) fn placeholder(n: usize) -> String {
    if n == 1 {
        "%%PORT%%".to_owned()
    } else {
        format!("%%PORT{n}%%")
    }
}

/// As root the worker runs as `nobody`. The name of its group differs between systems.
fn user_line() -> String {
    if !peer::is_root() {
        return String::new();
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let gid = users
        .lines()
        .find(|line| line.starts_with("nobody:"))
        .and_then(|line| line.split(':').nth(3));
    let group = groups
        .lines()
        .find(|line| line.split(':').nth(2) == gid)
        .and_then(|line| line.split(':').next());
    group.map_or_else(String::new, |group| format!("user nobody {group};"))
}

/// Directories for request bodies; nginx makes all of its directories at start, used or not.
pub(crate) fn temp_paths() -> String {
    let mut text = "client_body_temp_path %%DIR%%/client_body_temp;".to_owned();
    if !peer::is_firstbyte() && !peer::is_root() {
        for kind in ["fastcgi", "proxy", "scgi", "uwsgi"] {
            text.push_str(&format!(" {kind}_temp_path %%DIR%%/{kind}_temp;"));
        }
    }
    text
}
