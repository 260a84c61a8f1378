//! Files of configuration that the package installs, put beside a test's own.

use std::path::Path;

use crate::server::Builder;

/// Puts files of `conf` where the server's `include` finds them.
///
/// # Panics
/// If one is missing.
#[must_use]
pub fn with_packaged(server: Builder, names: &[&str]) -> Builder {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conf");
    names.iter().fold(server, |server, name| {
        let path = folder.join(name);
        let content = std::fs::read(&path);
        let content = content.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        server.bytes(name, &content)
    })
}
