//! A server that is started with less than the tests themselves have.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::peer;
use crate::server::{Builder, OWN_BINARY};

/// Starts the server through a script that sets a limit with the shell's `ulimit`; a new binary inherits it.
///
/// # Panics
/// If the script cannot be written.
#[must_use]
pub fn limited(builder: Builder, limit: &str) -> Builder {
    builder.prepare(|dir| {
        let binary = peer::binary().display();
        let script = format!("#!/bin/sh\nulimit {limit}\nexec '{binary}' \"$@\"\n");
        let path = dir.join(OWN_BINARY);
        let folder = path.parent().expect("it is in a folder");
        fs::create_dir_all(folder).expect("the directory is writable");
        fs::write(&path, script).expect("as above");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    })
}
