//! The configuration of the dashboard, in memory.

use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use server_http::LoadOptions;
use sys::os_error;

use super::options::Options;

/// The text of a configuration in a memory file, which the supervisor reads by its path.
#[derive(Debug)]
pub(super) struct Site(OwnedFd);

impl Site {
    /// Writes the configuration.
    ///
    /// # Errors
    /// A sentence: a word has control characters, or there is no memory.
    pub(super) fn new(options: &Options, directory: &Path) -> Result<Self, String> {
        let text = text(options, directory)?;
        let file = sys::process::memory_file("firstbyte-lab.conf").and_then(|fd| {
            let mut file = File::from(fd);
            file.write_all(&text)?;
            Ok(file.into())
        });
        file.map(Self).map_err(|error| {
            let reason = os_error(&error);
            format!("cannot write the configuration ({reason})")
        })
    }

    /// How the configuration is loaded.
    pub(super) fn load_options(&self, directory: &Path) -> LoadOptions {
        LoadOptions {
            conf_path: format!("/proc/self/fd/{}", self.0.as_raw_fd()).into(),
            prefix: directory.join(""),
            globals: None,
            error_log: Some(PathBuf::from("stderr")),
            access_log: directory.join("access.log"),
        }
    }
}

fn text(options: &Options, directory: &Path) -> Result<Vec<u8>, String> {
    let mut store = vec![word(&store(options.store.as_bytes())?)?];
    let named = |name: &str, value: &[u8]| word(&[name.as_bytes(), b"=", value].concat());
    if let Some(user) = &options.user {
        store.push(named("user", user.as_bytes())?);
    }
    for (name, path) in [
        ("password_file", &options.password_file),
        ("ca", &options.cacert),
    ] {
        if let Some(path) = path {
            store.push(named(name, absolute(path)?.as_os_str().as_bytes())?);
        }
    }
    let pid = word(directory.join("lab.pid").as_os_str().as_bytes())?;
    let store = store.join(&b" "[..]);
    let servers = servers(options.listen, options.public);
    let begin = format!(
        "daemon off;\nmaster_process off;\nerror_log stderr warn;\nevents {{ worker_connections {CONNECTIONS}; }}\n"
    );
    let parts: [&[u8]; 7] = [
        begin.as_bytes(),
        b"pid ",
        &pid,
        b";\nhttp {\naccess_log off;\ngzip on;\ngzip_types text/css text/csv text/javascript application/json;\nlab_store ",
        &store,
        b";\n",
        servers.as_bytes(),
    ];
    Ok(parts.concat())
}

/// Returns the servers, and the end of `http`. Unless the pages are public, a foreign page must not read them under a
/// name that resolves to this machine.
fn servers(listen: SocketAddr, is_public: bool) -> String {
    let host = match listen.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let (others, names) = match is_public {
        true => (String::new(), String::new()),
        false => (
            format!("server {{ listen {listen} default_server; return 421; }}\n"),
            format!("server_name localhost {host};"),
        ),
    };
    format!(
        "{others}server {{ listen {listen}; {names} location / {{ lab_dashboard public; }} }}\n}}\n"
    )
}

/// Returns the store with an absolute path.
fn store(url: &[u8]) -> Result<Vec<u8>, String> {
    match url.strip_prefix(b"sqlite:") {
        Some(path) if !path.is_empty() => {
            let path = absolute(Path::new(std::ffi::OsStr::from_bytes(path)))?;
            Ok([b"sqlite:", path.as_os_str().as_bytes()].concat())
        }
        _ => Ok(url.to_vec()),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| {
        let reason = os_error(&error);
        format!("{}: {reason}", path.display())
    })
}

/// Returns a word of a configuration, in quotes.
fn word(bytes: &[u8]) -> Result<Vec<u8>, String> {
    if bytes.iter().any(u8::is_ascii_control) {
        return Err("names and paths must have no control characters".to_owned());
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    Ok(quoted)
}

/// Most connections; each event stream uses two.
const CONNECTIONS: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::parsed;

    fn made(line: &str) -> String {
        let options: Options = parsed(line).expect("it is accepted");
        let text = text(&options, Path::new("/tmp/a b")).expect("a configuration");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn words_are_quoted() {
        assert_eq!(word(b"a\"; b\\$c").expect("a word"), b"\"a\\\"; b\\\\$c\"");
        assert!(word(b"a\nb").is_err());
        assert!(word(b"a\0").is_err());
    }

    #[test]
    fn configuration_has_the_store_and_the_address() {
        let text = made("--store sqlite:/a;b --listen 127.0.0.1:1");
        assert!(text.contains("lab_store \"sqlite:/a;b\";"), "{text}");
        assert!(text.contains("pid \"/tmp/a b/lab.pid\";"), "{text}");
        assert!(text.contains("listen 127.0.0.1:1; server_name"), "{text}");
        let text = made("--store clickhouse:https://a/b --user c --password-file /d --cacert /e");
        let store =
            "lab_store \"clickhouse:https://a/b\" \"user=c\" \"password_file=/d\" \"ca=/e\";";
        assert!(text.contains(store), "{text}");
        let text = made("--store sqlite:/a --public --listen 0.0.0.0:1");
        assert!(!text.contains("421"), "{text}");
    }

    #[test]
    fn relative_paths_begin_at_the_working_directory() {
        let here = std::env::current_dir().expect("a directory");
        let text = made("--store sqlite:a/b.db");
        assert!(
            text.contains(&format!("sqlite:{}/a/b.db", here.display())),
            "{text}"
        );
    }
}
