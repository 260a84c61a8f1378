//! Configurations of simulations.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use server_base::errlog::{ErrorLog, Level, Sink};
use server_http::http::Http;
use server_http::module::Module;
use server_http::{LoadOptions, load};

/// Loads the text of a configuration with these modules. Its logs are not attached.
pub(crate) fn load_text(text: &str, modules: &'static [&'static Module]) -> Arc<Http> {
    let source = conf::Memory::default().with_file("/etc/sim.conf", text);
    let options = LoadOptions {
        conf_path: PathBuf::from("/etc/sim.conf"),
        prefix: PathBuf::from("/etc"),
        globals: None,
        error_log: None,
        access_log: PathBuf::from("/dev/null"),
    };
    let cycle = match load(source, &options, modules) {
        Ok(cycle) => cycle,
        Err(refused) => panic!("{}", refused.error.render(&refused.files)),
    };
    cycle.http.expect("the configuration has an http block")
}

/// Returns the error log of a single run: none, or the file of `SIM_LOG`.
pub(crate) fn log() -> ErrorLog {
    let sinks = std::env::var("SIM_LOG").ok().map(|path| {
        let mut options = File::options();
        let file = options.append(true).create(true).open(path);
        Sink::file(Arc::new(file.expect("the log can be made")), Level::Debug)
    });
    ErrorLog::new(sinks.into_iter().collect())
}
