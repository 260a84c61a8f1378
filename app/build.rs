//! Tells the program which compiler built it, for `-V`.

use std::env;
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
}
