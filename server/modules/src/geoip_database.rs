//! `geoip_database`: the databases by which visitors are counted by country, subdivision and network operator.
//!
//! The directive defines no variables; `geoip` and `geoip2` do. Files are read with the configuration, so that a broken
//! one is an error there. The store process reads them again at its start and at each reload. Absent: their contents in
//! the worker.
//!
//! Source: of our own; docs/map.md.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive, Word};
use geoip::Places;
use geoip::database::Database;
use server_http::assemble::ConfigBuilder;
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
        /// The warning about the first directive if nothing is recorded.
        unused: Option<ConfError>,
    }
    merge forget;
}

fn forget(own: &mut DatabaseMain, _: Option<&DatabaseMain>) {
    own.databases = Vec::new();
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Databases of visitors: countries, cities, network operators; the first file with the address counts.
    directive "geoip_database": Contexts::HTTP, ONE_MORE, "", "file ..." => |b, d| {
        for word in &d.args {
            add(b, d, word)?;
        }
        let databases = b.conf_mut::<DatabaseMain>().databases.clone();
        let places = Places::of_databases(databases);
        // Each file was opened alone before, so this error belongs to the whole directive.
        places.map_err(|error| ConfError::at(d, error.to_string()))?;
        let unused = || ConfError::directive(d, "has no effect without \"rtt_map on\"");
        b.conf_mut::<DatabaseMain>().unused.get_or_insert_with(unused);
        Ok(())
    };
}

/// Reads one file. A relative path is relative to the prefix, unlike in the directives of `geoip`.
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

/// Removes and returns the paths of all files, in order of precedence.
pub(crate) fn take_files(b: &mut ConfigBuilder) -> Vec<PathBuf> {
    std::mem::take(&mut b.conf_mut::<DatabaseMain>().files)
}

/// Warns if databases are named and nothing is recorded.
pub(crate) fn warn_of_no_effect(b: &mut ConfigBuilder) {
    if let Some(unused) = b.conf_mut::<DatabaseMain>().unused.take() {
        b.warn(unused);
    }
}
