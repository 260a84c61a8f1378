//! Golden configurations of the toy language: the result of each `golden/*.conft` is the log of the language, or the error as it
//! is shown.

mod cases;
mod toy;

use std::path::Path;

use cases::{COMMAND_LINE, files};
use conf::Memory;
use toy::{MAIN_FILE, Toy};

fn given(text: &str) -> String {
    let mut memory = Memory::default();
    let mut command_line = None;
    for (path, text) in files(MAIN_FILE, text) {
        match path {
            COMMAND_LINE => command_line = Some(text.trim_end().to_owned()),
            _ => memory.add_file(path, text),
        }
    }
    let mut toy = Toy::new(memory);
    let parameter = command_line.map_or(Ok(()), |text| toy.command_line(text.as_bytes()));
    let result = parameter.and_then(|()| toy.load());
    toy.render(result)
}

#[test]
fn golden_configurations_give_what_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    cases::check(&folder, 25, given);
}
