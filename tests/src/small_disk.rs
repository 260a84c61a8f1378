//! A server with a small file system in its directory, for tests of full disks.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::peer;
use crate::server::{Builder, OWN_BINARY};
use crate::skip::skip_outside_ci;

/// Makes the server start through a script that mounts a file system of this many KiB on `small` in its folder, for
/// this server alone. If mounting is not possible, the test is skipped with a message: `None`.
///
/// # Panics
/// If the folder of the test cannot be written to.
#[must_use]
pub fn on_small_disk(server: Builder, kib: u32) -> Option<Builder> {
    let tried = std::process::Command::new("unshare")
        .args(["--mount", "true"])
        .output();
    if !tried.is_ok_and(|outcome| outcome.status.success()) {
        skip_outside_ci("nothing can be mounted here");
        return None;
    }
    let server = server.prepare(|dir| {
        let small = dir.join("small");
        fs::create_dir(&small).expect("a folder");
        let binary = peer::binary().display();
        let mount = format!("mount -t tmpfs -o size={kib}k,mode=0777 small \"$0\"");
        let script = format!(
            "#!/bin/sh\nexec unshare --mount sh -c '{mount} && exec \"$@\"' {} '{binary}' \"$@\"\n",
            small.display()
        );
        let path = dir.join(OWN_BINARY);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(&path, script).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    });
    Some(server.allow("No space left on device"))
}
