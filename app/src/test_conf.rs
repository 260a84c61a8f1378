//! `-t` and `-T`: tests the configuration including its files and addresses, and prints it.
//!
//! As in nginx, logs and the pid file are opened (created if missing) and every address is bound. An address in use is
//! taken for that of the running server.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::argv::Options;
use crate::console::{self, Console};
use crate::load::Loaded;
use crate::paths::Paths;
use crate::stdout;
use crate::supervisor::open;

/// Tests a loaded configuration and reports the result. `None` is one that was refused and reported.
pub(crate) fn run(
    options: &Options,
    paths: &Paths,
    console: &Console,
    loaded: Option<Loaded>,
) -> ExitCode {
    let conf = paths.conf.display();
    let passed = loaded.filter(|loaded| {
        if !options.quiet {
            console::say(format_args!("the configuration file {conf} syntax is ok"));
        }
        open::test(&loaded.cycle, console).is_ok()
    });
    let Some(loaded) = passed else {
        console::say(format_args!("configuration file {conf} test failed"));
        return ExitCode::FAILURE;
    };
    if !options.quiet {
        console::say(format_args!("configuration file {conf} test is successful"));
    }
    let dumped = match options.dump {
        true => stdout::write_with(|out| dump(loaded.cycle.files.iter(), out)),
        false => Ok(()),
    };
    // The process ends: of a hundred thousand locations, taking each apart is a seventh of the time.
    std::mem::forget(loaded);
    match dumped {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            console::say(format_args!("{why}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes every file after a line with its name.
fn dump<'a>(
    files: impl Iterator<Item = (&'a Path, &'a [u8])>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (path, text) in files {
        writeln!(out, "# configuration file {}:", path.display())?;
        out.write_all(text)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dump_has_each_file_under_its_name() {
        let files = [
            (Path::new("/a"), b"x;\n".as_slice()),
            (Path::new("/b"), b"y".as_slice()),
        ];
        let mut out = Vec::new();
        dump(files.into_iter(), &mut out).expect("memory");
        let expected = b"# configuration file /a:\nx;\n\n# configuration file /b:\ny\n";
        assert_eq!(out, expected);
    }
}
