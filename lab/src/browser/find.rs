//! Finds the program of the browser.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use sys::os_error;

/// Returns the absolute path of a browser: `wanted`, a path or a name in PATH; otherwise Chromium or Chrome from PATH.
///
/// # Errors
/// A sentence with the name of the package: there is no browser.
pub fn find(wanted: Option<&Path>) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = found_in(&path, wanted)?;
    // The browser is started in a directory of its own.
    std::path::absolute(&found)
        .map_err(|error| format!("{}: {}", found.display(), os_error(&error)))
}

fn found_in(path: &OsStr, wanted: Option<&Path>) -> Result<PathBuf, String> {
    let in_path = |name: &Path| {
        let places = std::env::split_paths(path).map(|place| place.join(name));
        places.into_iter().find(|path| is_program(path))
    };
    if let Some(wanted) = wanted {
        let found = if wanted.components().count() > 1 {
            Some(wanted.to_owned()).filter(|path| is_program(path))
        } else {
            in_path(wanted)
        };
        return found.ok_or_else(|| format!("{} is not an executable file", wanted.display()));
    }
    let mut names = NAMES.iter().map(Path::new);
    names.find_map(in_path).ok_or_else(|| NONE.to_owned())
}

/// Whether a path is a file that somebody may execute.
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_executable = |file: std::fs::Metadata| file.permissions().mode() & 0o111 != 0;
    path.is_file() && path.metadata().is_ok_and(is_executable)
}

/// Names under which distributions install the browser.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
const NONE: &str = "no browser found: install chromium (the name of Debian's package), \
                    or name another Chromium browser with --browser PATH";

#[cfg(test)]
mod tests {
    use super::*;
    use firstbyte_tests::TempDir;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn browser_is_found_by_its_names_and_by_its_path() {
        let dir = TempDir::new();
        dir.write("b/chromium-browser", "");
        dir.write("a/chromium", "not executable");
        let program = dir.path().join("b/chromium-browser");
        let path = format!("{0}/a:{0}/b", dir.path().display());
        let find = |wanted: Option<&str>| found_in(OsStr::new(&path), wanted.map(Path::new));
        let none = find(None).expect_err("neither is a program");
        assert!(none.contains("install chromium"), "{none}");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
        assert_eq!(find(None).as_ref(), Ok(&program));
        assert_eq!(find(Some("chromium-browser")).as_ref(), Ok(&program));
        assert_eq!(find(Some(&program.display().to_string())), Ok(program));
        for missing in ["chrome", "/nonexistent/chromium", "/", "."] {
            let why = find(Some(missing)).expect_err("no program");
            assert_eq!(why, format!("{missing} is not an executable file"));
        }
    }
}
