//! Default paths, and paths of the command line.
//!
//! The defaults are those of nginx's packages. A build can set others by environment variables, as nginx's configure
//! script does by arguments. Under the name `nginx` the program has nginx's paths in such a build too, so that one
//! binary can be installed beside nginx and in its place. The default of the pid file belongs to the core, which reads
//! the `pid` directive. Source: nginx documentation, "Building nginx from Sources".

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use server_http::LoadOptions;

use crate::argv::Options;

/// The paths of one run, absolute unless the prefix itself is relative, as in nginx.
#[derive(Debug)]
pub(crate) struct Paths {
    /// Base directory of relative paths in the configuration; ends with a slash.
    pub(crate) prefix: PathBuf,
    /// The configuration file.
    pub(crate) conf: PathBuf,
    /// Error log before the configuration sets one; `None` is standard error.
    pub(crate) error_log: Option<PathBuf>,
}

impl Paths {
    /// Joins the command line with the defaults.
    pub(crate) fn new(options: &Options) -> Self {
        let defaults = defaults();
        let or = |given: &Option<OsString>, default: &str| {
            given.clone().unwrap_or_else(|| OsString::from(default))
        };
        let prefix = with_slash(&or(&options.prefix, defaults.prefix));
        let conf = or(&options.conf, defaults.conf);
        let error_log = or(&options.error_log, defaults.error_log);
        Self {
            conf: conf_prefix(options, &prefix, defaults).join(conf),
            error_log: (!error_log.is_empty()).then(|| prefix.join(error_log)),
            prefix,
        }
    }

    /// Paths that the core needs to load the configuration.
    pub(crate) fn load_options(&self, options: &Options) -> LoadOptions {
        LoadOptions {
            conf_path: self.conf.clone(),
            prefix: self.prefix.clone(),
            globals: options
                .globals
                .as_ref()
                .map(|text| text.to_string_lossy().into_owned()),
            error_log: Some(self.error_log.clone().unwrap_or_else(|| STDERR.into())),
            access_log: defaults().access_log.into(),
        }
    }
}

/// Base directory of a relative `-c`: the prefix of `-p`, else the directory of the default file.
fn conf_prefix(options: &Options, prefix: &Path, defaults: &Defaults) -> PathBuf {
    match (&options.prefix, Path::new(defaults.conf).parent()) {
        (None, Some(directory)) => directory.to_path_buf(),
        _ => prefix.to_path_buf(),
    }
}

fn with_slash(prefix: &OsStr) -> PathBuf {
    // Joining the empty path adds a slash if there is none.
    Path::new(prefix).join("")
}

/// Paths used if neither the command line nor the configuration sets them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Defaults {
    /// The prefix without `-p`.
    pub(crate) prefix: &'static str,
    /// The configuration file without `-c`.
    pub(crate) conf: &'static str,
    /// The error log without `-e` and `error_log`.
    pub(crate) error_log: &'static str,
    /// The access log without the `access_log` directive.
    pub(crate) access_log: &'static str,
}

/// Returns the default paths for the name of the program.
pub(crate) fn defaults() -> &'static Defaults {
    let program = std::env::args_os().next().unwrap_or_default();
    of_name(Path::new(&program))
}

fn of_name(program: &Path) -> &'static Defaults {
    if program.file_name() == Some(OsStr::new("nginx")) {
        &NGINX
    } else {
        &BUILD
    }
}

/// The paths of nginx's packages; Debian's have another prefix.
const NGINX: Defaults = Defaults {
    prefix: built_with(option_env!("FIRSTBYTE_NGINX_PREFIX"), "/etc/nginx"),
    conf: "/etc/nginx/nginx.conf",
    error_log: "/var/log/nginx/error.log",
    access_log: "/var/log/nginx/access.log",
};

/// Paths set at build time, else nginx's.
const BUILD: Defaults = Defaults {
    prefix: built_with(option_env!("FIRSTBYTE_PREFIX"), NGINX.prefix),
    conf: built_with(option_env!("FIRSTBYTE_CONF_PATH"), NGINX.conf),
    error_log: built_with(option_env!("FIRSTBYTE_ERROR_LOG_PATH"), NGINX.error_log),
    access_log: built_with(option_env!("FIRSTBYTE_ACCESS_LOG_PATH"), NGINX.access_log),
};

const fn built_with(given: Option<&'static str>, default: &'static str) -> &'static str {
    match given {
        Some(path) => path,
        None => default,
    }
}

/// Name of standard error for the core.
const STDERR: &str = "stderr";

/// The pid file without the `pid` directive.
pub(crate) const PID: &str = "/run/nginx.pid";

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(found.conf, Path::new(BUILD.conf));
        assert_eq!(found.error_log.as_deref(), Some(Path::new(BUILD.error_log)));
    }

    #[test]
    fn called_as_nginx_it_looks_where_nginx_does() {
        for program in ["nginx", "/usr/sbin/nginx", "./nginx"] {
            assert_eq!(of_name(Path::new(program)), &NGINX);
        }
        for program in ["", "firstbyte", "/usr/sbin/firstbyte", "/nginx/firstbyte"] {
            assert_eq!(of_name(Path::new(program)), &BUILD);
        }
    }
}
