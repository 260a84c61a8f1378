//! `lab`: the dashboard of a store, for a team and for a fleet of servers.
//!
//! The normal server serves it by a configuration that is made in memory, as a process of the user who runs the command. It reads
//! the store and never writes it.
//!
//! Source: of our own; docs/dashboard.md, docs/fleet.md.

mod directory;
mod options;
mod site;

use std::ffi::OsString;
use std::process::ExitCode;

use server_base::errlog::Level;
use server_http::LoadOptions;
use sys::os_error;

use super::output::fail;
use crate::console::Console;
use crate::load::{self, Loaded};
use crate::recorder;
use crate::{stdout, supervisor};
use directory::Directory;
use site::Site;

pub(super) use options::Options;

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    match prepare(options) {
        Ok(prepared) => prepared.serve(),
        Err(why) => fail(NAME, &why),
    }
}

/// A configuration that can be served.
struct Prepared {
    options: LoadOptions,
    loaded: Loaded,
    url: String,
    /// Its files are needed until the end.
    site: Site,
    directory: Directory,
}

fn prepare(options: &Options) -> Result<Prepared, String> {
    if !options.public && !options.listen.ip().is_loopback() {
        let address = options.listen;
        return Err(format!(
            "{address} is not a loopback address, so other machines could read the store: add --public to allow \
             it, or use lab_dashboard in a location with access rules"
        ));
    }
    let directory = Directory::new().map_err(|error| {
        let reason = os_error(&error);
        format!("cannot create a temporary directory ({reason})")
    })?;
    let site = Site::new(options, directory.path())?;
    let load_options = site.load_options(directory.path());
    let (read, _) = load::recorded(&load_options);
    // The place of the error is omitted: it is in a generated file.
    let loaded = read.map_err(|refused| {
        let hint = refused.error.hint().map(|hint| format!("\n{hint}"));
        refused.error.message().to_owned() + &hint.unwrap_or_default()
    })?;
    if let Some(conf) = &loaded.cycle.main.lab_store {
        recorder::check_files(conf)?;
        recorder::check_readable(conf)?;
    }
    Ok(Prepared {
        options: load_options,
        loaded,
        url: format!("http://{}/", options.listen),
        site,
        directory,
    })
}

impl Prepared {
    /// Serves until a signal ends it.
    fn serve(self) -> ExitCode {
        // A failed write means that the output is closed.
        let _ = stdout::write(&format!("dashboard: {}\n", self.url));
        let console = Console::open(None, Level::Warn);
        console.warnings(&self.loaded.cycle.warnings);
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let status = supervisor::run(self.options, self.loaded, console, &arguments);
        drop((self.site, self.directory));
        status
    }
}

/// The verb.
const NAME: &str = "lab";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::parsed;

    #[test]
    fn addresses_for_other_machines_need_public() {
        for (address, is_refused) in [
            ("127.9.9.9:1", false),
            ("[::1]:1", false),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
            ("192.0.2.1:1", true),
        ] {
            for flag in ["", "--public"] {
                let line = format!("--store sqlite:/none --listen {address} {flag}");
                let options: Options = parsed(&line).expect("it is accepted");
                let Err(why) = prepare(&options) else {
                    panic!("there is no such store");
                };
                let is_about_address = why.contains("add --public");
                assert_eq!(
                    is_about_address,
                    is_refused && flag.is_empty(),
                    "{line}: {why}"
                );
            }
        }
    }
}
