//! `geoip_database`: the databases by which visitors are counted by country, subdivision and network operator.
//!
//! The directive has no variables of its own; `geoip` and `geoip2` have these. A file that `geoip_country` names as well
//! is in memory once. Files are read when the configuration is: a changed file counts from the next reload.
//!
//! Source: of our own; docs/differences.md.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive, Word};
use geoip::Places;
use geoip::database::Database;
use server_http::build::ConfigBuilder;
use server_http::http::Http;
use server_http::module::Module;
use server_http::settings;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "geoip_database",
    directives: &[PLAIN, ROWS],
    settings: &[<DatabaseMain as server_http::settings_set::Conf>::def],
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct DatabaseMain: Main / PLAIN {}
    extra {
        /// The files by their full names, in the order of the directives.
        files: Vec<PathBuf>,
        /// The databases of `files`.
        databases: Vec<(String, Arc<Database>)>,
        /// All databases together.
        places: Option<Arc<Places>>,
    }
    merge forget;
}

fn forget(own: &mut DatabaseMain, _: Option<&DatabaseMain>) {
    own.databases = Vec::new();
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Databases of visitors: countries, cities, network operators; the first file that knows an address counts.
    directive "geoip_database": Contexts::HTTP, ONE_MORE, "", "file ..." => |b, d| {
        for word in &d.args {
            add(b, d, word)?;
        }
        let databases = b.conf_mut::<DatabaseMain>().databases.clone();
        let places = Places::of_databases(databases);
        // Each was tried alone, so this error has no word of its own.
        let places = places.map_err(|error| ConfError::at(d, error.to_string()))?;
        b.conf_mut::<DatabaseMain>().places = Some(Arc::new(places));
        Ok(())
    };
}

/// Reads one file. A relative path is below the prefix, as in all directives but those of `geoip`.
fn add(b: &mut ConfigBuilder, d: &Directive, word: &Word) -> Result<(), ConfError> {
    let full = b.full_path(&word.text);
    let shown = String::from_utf8_lossy(&full).into_owned();
    let path = PathBuf::from(OsString::from_vec(full.clone()));
    if b.conf_mut::<DatabaseMain>().files.contains(&path) {
        return Ok(());
    }
    let failed = |why: String| {
        let text = format!("geoip_database \"{shown}\" failed ({why})");
        ConfError::word(d, word, text)
    };
    let database = crate::geoip::read(b, &full).map_err(failed)?;
    let alone = [(shown.clone(), Arc::clone(&database))];
    Places::of_databases(alone).map_err(|error| failed(error.reason()))?;
    let own = b.conf_mut::<DatabaseMain>();
    own.files.push(path);
    own.databases.push((shown, database));
    Ok(())
}

/// Returns the files of all `geoip_database` directives by their full names, in order of precedence.
#[must_use]
pub fn files(http: &Http) -> &[PathBuf] {
    &http.main::<DatabaseMain>().files
}

/// Returns the databases; `None` without a `geoip_database` directive.
#[must_use]
pub fn places(http: &Http) -> Option<&Arc<Places>> {
    http.main::<DatabaseMain>().places.as_ref()
}
