//! Where things are by default, and what the command line makes of it.
//!
//! The defaults are those of nginx's packages; a build can set others by environment variables, as
//! nginx's configure script does by arguments. The pid file's default belongs to the core, which
//! reads the `pid` directive. Source: nginx documentation, "Building nginx from Sources".

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use server_core::LoadOptions;

use crate::argv::Options;

/// The paths of one run, absolute unless the prefix itself is relative, as in nginx.
#[derive(Debug)]
pub(crate) struct Paths {
    /// What relative paths of the configuration start from; ends with a slash.
    pub(crate) prefix: PathBuf,
    /// The configuration file.
    pub(crate) conf: PathBuf,
    /// The error log until the configuration names one; `None` is standard error.
    pub(crate) error_log: Option<PathBuf>,
}

impl Paths {
    /// Joins what the command line gives with the defaults.
    pub(crate) fn new(options: &Options) -> Self {
        let prefix = with_slash(options.prefix.as_deref().unwrap_or(OsStr::new(PREFIX)));
        let conf = options.conf.as_deref().unwrap_or(OsStr::new(CONF));
        let error_log = options
            .error_log
            .as_deref()
            .unwrap_or(OsStr::new(ERROR_LOG));
        Self {
            conf: conf_prefix(options, &prefix).join(conf),
            error_log: (!error_log.is_empty()).then(|| prefix.join(error_log)),
            prefix,
        }
    }

    /// What the core needs to load the configuration.
    pub(crate) fn load_options(&self, options: &Options) -> LoadOptions {
        LoadOptions {
            conf_path: self.conf.clone(),
            prefix: self.prefix.clone(),
            globals: options
                .globals
                .as_ref()
                .map(|text| text.to_string_lossy().into_owned()),
            error_log: Some(self.error_log.clone().unwrap_or_else(|| STDERR.into())),
            access_log: ACCESS_LOG.into(),
        }
    }
}

/// What a relative `-c` starts from: the prefix of `-p`, else the directory of the default file.
fn conf_prefix(options: &Options, prefix: &Path) -> PathBuf {
    match (&options.prefix, Path::new(CONF).parent()) {
        (None, Some(directory)) => directory.to_path_buf(),
        _ => prefix.to_path_buf(),
    }
}

fn with_slash(prefix: &OsStr) -> PathBuf {
    // Joining the empty path adds a slash where there is none.
    Path::new(prefix).join("")
}

/// The prefix without `-p`.
pub(crate) const PREFIX: &str = match option_env!("FIRSTBYTE_PREFIX") {
    Some(path) => path,
    None => "/etc/nginx",
};

/// The configuration file without `-c`.
pub(crate) const CONF: &str = match option_env!("FIRSTBYTE_CONF_PATH") {
    Some(path) => path,
    None => "/etc/nginx/nginx.conf",
};

/// The error log without `-e` and `error_log`.
pub(crate) const ERROR_LOG: &str = match option_env!("FIRSTBYTE_ERROR_LOG_PATH") {
    Some(path) => path,
    None => "/var/log/nginx/error.log",
};

/// How the core is told of standard error.
const STDERR: &str = "stderr";

/// The pid file without the `pid` directive.
pub(crate) const PID: &str = "/run/nginx.pid";

/// The access log without the `access_log` directive.
pub(crate) const ACCESS_LOG: &str = "/var/log/nginx/access.log";

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn paths(prefix: Option<&str>, conf: Option<&str>, log: Option<&str>) -> Paths {
        Paths::new(&Options {
            prefix: prefix.map(OsString::from),
            conf: conf.map(OsString::from),
            error_log: log.map(OsString::from),
            ..Options::default()
        })
    }

    #[test]
    fn relative_paths_start_from_the_prefix() {
        let found = paths(Some("/srv/x"), Some("a.conf"), Some("e.log"));
        assert_eq!(found.prefix.as_os_str(), "/srv/x/");
        assert_eq!(found.conf, Path::new("/srv/x/a.conf"));
        assert_eq!(found.error_log.as_deref(), Some(Path::new("/srv/x/e.log")));
    }

    #[test]
    fn absolute_paths_and_standard_error_stay() {
        let found = paths(Some("/srv/x/"), Some("/a.conf"), Some(""));
        assert_eq!(found.prefix.as_os_str(), "/srv/x/");
        assert_eq!(found.conf, Path::new("/a.conf"));
        assert_eq!(found.error_log, None);
    }

    #[test]
    fn defaults_are_those_of_the_build() {
        let found = paths(None, None, None);
        assert_eq!(found.conf, Path::new(CONF));
        assert_eq!(found.error_log.as_deref(), Some(Path::new(ERROR_LOG)));
    }
}
