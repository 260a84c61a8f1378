//! The configuration language: lexing, parsing, the walk with includes, and the rendering of errors.
//!
//! The input is the main file; a byte 0xff starts the next of `a.conf`, `b.conf` and the text of `-g`. Whatever the
//! bytes, nothing panics and the walk ends. A text is also parsed alone: an error is its last item at every level.
#![no_main]

use conf::{Item, Memory, Origin, parse};
use libfuzzer_sys::fuzz_target;

#[path = "../../server/conf/tests/toy/mod.rs"]
mod toy;

use toy::{MAIN_FILE, Toy};

/// Longer inputs are slower and find nothing more.
const INPUT_MAX: usize = 2048;

fuzz_target!(|data: &[u8]| {
    if data.len() > INPUT_MAX || includes(data) > 1 {
        return;
    }
    check_shape(&parse(&std::sync::Arc::new(data.to_vec()), 0, &Origin::file(MAIN_FILE)));
    let mut parts = data.split(|byte| *byte == 0xff);
    let mut part = || parts.next().unwrap_or_default();
    let files = Memory::default().with_file(MAIN_FILE, part());
    let files = files
        .with_file("/etc/nginx/a.conf", part())
        .with_file("/etc/nginx/b.conf", part());
    let mut toy = Toy::new(files).terse();
    let parameter = toy.command_line(part());
    toy.render(parameter);
    let result = toy.load();
    toy.render(result);
});

/// Files that include each other twice are read up to the limit of includes. This takes most of a second and is covered
/// by unit tests.
fn includes(data: &[u8]) -> usize {
    data.windows(7).filter(|word| word == b"include").count()
}

/// Checks that nothing follows an error, and that line numbers do not decrease.
fn check_shape(items: &[Item]) {
    for (index, item) in items.iter().enumerate() {
        match item {
            Item::Error(_) => assert_eq!(index, items.len() - 1, "an item follows an error"),
            Item::Directive(d) => {
                assert!(d.pos.line <= d.end_line, "the head ends before it begins");
                assert!(
                    d.end_line <= d.close_line,
                    "the block ends before it begins"
                );
                check_shape(d.items());
            }
        }
    }
}
