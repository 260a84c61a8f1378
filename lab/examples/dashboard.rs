//! Serves the dashboard over generated rows: `dashboard [FILE]`, a store of SQLite that is made if it is missing.
//!
//! For looking at the pages while they are changed. It prints its address and runs until its input ends.

#[path = "../tests/dashboard/mod.rs"]
mod dashboard;

use std::io::Read;
use std::path::PathBuf;

fn main() {
    let file = std::env::args_os().nth(1).map(PathBuf::from);
    let file = file.unwrap_or_else(|| std::env::temp_dir().join("dashboard.db"));
    if !file.exists() {
        dashboard::filled(&file, 60_000);
    }
    let site = dashboard::Dashboard::start(&file);
    println!("{}", site.url(""));
    let open = [("HTTP/1.1".to_owned(), 12), ("HTTP/2.0".to_owned(), 87)];
    site.live.set_open(1, open);
    // The end of the input is the end of the program.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
