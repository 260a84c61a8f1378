//! Sound configurations give no warning: those of `tests/conf/sound`, the ones that are installed, the example site,
//! and the site that Debian's nginx comes with, where that is installed.

use std::fs;
use std::path::{Path, PathBuf};

use conf::Memory;

fn tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// The warnings about a configuration.
fn warnings(text: &str) -> Vec<String> {
    let types = fs::read(tree("conf/mime.types")).expect("the types are part of the tree");
    let main = Path::new("/etc/nginx/site/nginx.conf");
    let source = Memory::default()
        .with_file(main, text)
        .with_file("/etc/nginx/site/mime.types", types.as_slice())
        .with_file("/etc/nginx/site/../../conf/mime.types", types);
    let report = lint::check(source, main, None).unwrap_or_else(|| panic!("not whole: {text}"));
    report.rendered().collect()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn sound_configurations_give_no_warning() {
    let folder = fs::read_dir(tree("tests/conf/sound")).expect("the folder is part of the tree");
    let mut count = 0;
    for entry in folder {
        let path = entry.expect("the folder can be read").path();
        assert_eq!(warnings(&text(&path)), [""; 0], "{}", path.display());
        count += 1;
    }
    assert!(count >= 20, "only {count} configurations");
}

#[test]
fn our_own_configurations_give_no_warning() {
    for path in ["conf/nginx.conf", "examples/site/nginx.conf"] {
        assert_eq!(warnings(&text(&tree(path))), [""; 0], "{path}");
    }
}

#[test]
fn the_site_of_debian_gives_no_warning() {
    let Ok(site) = fs::read_to_string("/etc/nginx/sites-available/default") else {
        return;
    };
    let whole = format!("events {{ }}\nhttp {{ include mime.types;\n{site}\n}}\n");
    assert_eq!(warnings(&whole), [""; 0]);
}
