//! Sound configurations cause no warning: those of `tests/conf/sound`, the installed ones, the example site, and the default
//! site of Debian's nginx if it is installed.

use std::fs;
use std::path::{Path, PathBuf};

use conf::Memory;

/// Files of the packages that sites include.
const INCLUDED: [&str; 6] = [
    "mime.types",
    "fastcgi_params",
    "fastcgi.conf",
    "scgi_params",
    "uwsgi_params",
    "snippets/fastcgi-php.conf",
];

fn tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// The warnings about a configuration.
fn warnings(text: &str) -> Vec<String> {
    let main = Path::new("/etc/nginx/site/nginx.conf");
    let mut source = Memory::default().with_file(main, text);
    for name in INCLUDED {
        let included =
            fs::read(tree(&format!("conf/{name}"))).expect("the file is part of the tree");
        source = source
            .with_file(format!("/etc/nginx/site/{name}"), included.as_slice())
            .with_file(format!("/etc/nginx/site/../../conf/{name}"), included);
    }
    let report = lint::check(source, main, None)
        .unwrap_or_else(|refused| panic!("{}: {text}", refused.error));
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
    for path in [
        "conf/nginx.conf",
        "examples/site/nginx.conf",
        "examples/php/nginx.conf",
    ] {
        assert_eq!(warnings(&text(&tree(path))), [""; 0], "{path}");
    }
}

#[test]
fn sites_that_include_the_files_of_the_packages_give_no_warning() {
    let server = "listen 80; root /srv; index index.php;
        location ~ \\.php(/|$) { include snippets/fastcgi-php.conf; fastcgi_pass unix:/run/php/php-fpm.sock; }
        location /app/ { include fastcgi_params; fastcgi_pass 127.0.0.1:9000; }
        location /s/ { include scgi_params; scgi_pass 127.0.0.1:9001; }
        location /u/ { include uwsgi_params; uwsgi_pass 127.0.0.1:9002; }";
    let whole = |server: &str| {
        format!("events {{ }}\nhttp {{ include mime.types; server {{ {server} }} }}\n")
    };
    assert_eq!(warnings(&whole(server)), [""; 0]);
    let unchecked = server.replace("snippets/fastcgi-php.conf", "fastcgi.conf");
    assert_eq!(
        warnings(&whole(&unchecked)).len(),
        1,
        "the script is not looked for"
    );
}

#[test]
fn the_site_of_debian_gives_no_warning() {
    let Ok(site) = fs::read_to_string("/etc/nginx/sites-available/default") else {
        return;
    };
    let whole = format!("events {{ }}\nhttp {{ include mime.types;\n{site}\n}}\n");
    assert_eq!(warnings(&whole), [""; 0]);
}
