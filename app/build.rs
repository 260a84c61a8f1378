//! Sets the compiler's version and the TLS library as environment of the build, for `-V`.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let version = version.as_deref().map_or("rustc", str::trim);
    println!("cargo::rustc-env=FIRSTBYTE_COMPILER={version}");
    let lock = Path::new("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let lock = fs::read_to_string(lock).unwrap_or_default();
    let rustls = locked(&lock, "rustls").unwrap_or_default();
    println!("cargo::rustc-env=FIRSTBYTE_RUSTLS={rustls}");
}

/// The version of a package in the lock file.
fn locked<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let mut lines = lock.lines();
    lines.find(|line| *line == format!("name = \"{name}\""))?;
    let version = lines.next()?.strip_prefix("version = \"")?;
    version.strip_suffix('"')
}
