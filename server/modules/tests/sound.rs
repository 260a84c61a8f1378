//! Sound configurations load without a warning: those of `tests/conf/sound` that use only implemented directives.
//!
//! Others begin with a mark. A test of `server/lint` checks that the lint has no warning for any of them.

use std::fs;
use std::path::{Path, PathBuf};

use conf::Memory;
use server_http::LoadOptions;
use server_modules::MODULES;

/// The beginning of a configuration that does not load here.
const MARK: &str = "# On the tree alone: ";

#[test]
fn sound_configurations_load() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let types = fs::read(root.join("conf/mime.types")).expect("the types are part of the tree");
    let folder =
        fs::read_dir(root.join("tests/conf/sound")).expect("the folder is part of the tree");
    let mut count = 0;
    for entry in folder {
        let path = entry.expect("the folder can be read").path();
        let text = fs::read_to_string(&path).expect("a configuration can be read");
        if text.starts_with(MARK) {
            continue;
        }
        let main = PathBuf::from("/etc/nginx/nginx.conf");
        let source = Memory::default()
            .with_file(&main, text)
            .with_file("/etc/nginx/mime.types", types.as_slice());
        let options = LoadOptions {
            conf_path: main,
            prefix: PathBuf::from("/usr/share/nginx"),
            globals: None,
            error_log: None,
            access_log: PathBuf::from("/var/log/nginx/access.log"),
        };
        match server_http::load(source, &options, MODULES) {
            Ok(cycle) => assert_eq!(cycle.warnings, [""; 0], "{}", path.display()),
            Err(refused) => panic!("{}: {}", path.display(), refused.error),
        }
        count += 1;
    }
    assert!(count >= 12, "only {count} configurations load");
}
