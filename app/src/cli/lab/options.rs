//! The options of `lab`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// serve the dashboard of a store of connections
///
/// Serves the pages of the directive lab_dashboard, for the store of one server or of a whole fleet. The store is only read.
/// SIGINT or SIGTERM ends it.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The store: sqlite:PATH or clickhouse:http[s]://HOST[:PORT]/DATABASE
    #[arg(long, value_name = "URL")]
    pub(super) store: OsString,
    /// Address and port of the pages
    #[arg(long, value_name = "ADDR", default_value = LISTEN, value_parser = address)]
    pub(super) listen: SocketAddr,
    /// Serve every client, on an address that other machines can reach
    #[arg(long)]
    pub(super) public: bool,
    /// User of ClickHouse
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,
    /// File with the password of this user
    #[arg(long, value_name = "FILE", requires = "user")]
    pub(super) password_file: Option<PathBuf>,
    /// Trusted certificates, PEM, instead of those of the system
    #[arg(long, value_name = "FILE")]
    pub(super) cacert: Option<PathBuf>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let address: Option<SocketAddr> = text.parse().ok();
    let address = address.filter(|address| address.port() != 0);
    address.ok_or_else(|| format!("not an address with a port, such as {LISTEN}"))
}

/// Address of the pages by default.
const LISTEN: &str = "127.0.0.1:7070";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::parsed;

    #[test]
    fn options_are_read() {
        let options: Options = parsed("--store sqlite:a").expect("it is accepted");
        assert_eq!(options.listen.to_string(), LISTEN);
        let line = "--store clickhouse:http://a/b --listen [::1]:65535 --public --user c --password-file d --cacert e";
        let options: Options = parsed(line).expect("it is accepted");
        assert_eq!(options.listen.to_string(), "[::1]:65535");
        assert!(options.public);
    }

    #[test]
    fn wrong_options_are_refused() {
        for (line, why) in [
            ("", "--store"),
            ("--store a --listen 127.0.0.1", "not an address with a port"),
            (
                "--store a --listen 127.0.0.1:0",
                "not an address with a port",
            ),
            (
                "--store a --listen 127.0.0.1:65536",
                "not an address with a port",
            ),
            (
                "--store a --listen localhost:1",
                "not an address with a port",
            ),
            ("--store a --password-file b", "--user"),
        ] {
            let error = parsed::<Options>(line).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
