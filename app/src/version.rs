//! The version, and how the program was built.
//!
//! Scripts and test suites read the version and, after `configure arguments:`, which of nginx's
//! standard modules are absent. Source: nginx documentation, "Command-line parameters".

use crate::paths;

/// Returns the version of nginx that this program replaces, and its own version.
pub(crate) fn name() -> String {
    format!(
        "nginx/{NGINX_VERSION} (firstbyte/{})",
        env!("CARGO_PKG_VERSION")
    )
}

/// The compiler that built the program.
pub(crate) fn compiler() -> &'static str {
    env!("FIRSTBYTE_COMPILER")
}

/// Build information that `-V` prints beside the version.
pub(crate) fn configure() -> String {
    let defaults = paths::defaults();
    let mut arguments = format!(
        "built by {}\nTLS: rustls {}, configuration compatible with OpenSSL 3.0.0\n\
         TLS SNI support enabled\nconfigure arguments: --prefix={} --conf-path={} --pid-path={} \
         --error-log-path={} --http-log-path={}",
        compiler(),
        env!("FIRSTBYTE_RUSTLS"),
        defaults.prefix,
        defaults.conf,
        paths::PID,
        defaults.error_log,
        defaults.access_log,
    );
    for argument in std::iter::once("--with-debug".to_owned())
        .chain(server_modules::with())
        .chain(server_modules::without())
    {
        arguments.push(' ');
        arguments.push_str(&argument);
    }
    arguments.push('\n');
    arguments
}

/// Version of nginx that is the reference for configuration and behaviour.
const NGINX_VERSION: &str = "1.31.4";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_found_where_nginx_has_it() {
        assert!(name().starts_with("nginx/1.31.4 (firstbyte/"));
    }

    #[test]
    fn configure_arguments_are_one_line() {
        let text = configure();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[0].starts_with("built by rustc "));
        // Test suites read the version of OpenSSL with the same configuration.
        assert!(lines[1].starts_with("TLS: rustls 0."));
        assert!(lines[1].ends_with("compatible with OpenSSL 3.0.0"));
        assert_eq!(lines[2], "TLS SNI support enabled");
        assert!(lines[3].starts_with("configure arguments: --prefix="));
    }
}
