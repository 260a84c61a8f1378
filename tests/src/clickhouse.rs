//! A ClickHouse server of one test, on a port of 127.0.0.1.
//!
//! Debian 12 has the package `clickhouse-server`, version 18.16; Debian 13 has none.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::dir::TempDir;
use crate::port::Port;
use crate::process;
use crate::programs::Program;
use crate::skip::{skip, skip_outside_ci};

/// Place of the program in the package.
const PROGRAM: &str = "/usr/sbin/clickhouse-server";
/// Users: `default` without a password, `writer` with `s3cret`, and `reader` with read-only rights.
const USERS: &str = "<yandex>
<profiles>
<default><max_memory_usage>4000000000</max_memory_usage></default>
<readonly><readonly>1</readonly></readonly>
</profiles>
<users>
<default><password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default>
<writer><password>s3cret</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></writer>
<reader><password></password><networks><ip>::/0</ip></networks><profile>readonly</profile><quota>default</quota></reader>
</users>
<quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows>
<read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas>
</yandex>
";

/// A ClickHouse server. It ends when it is dropped.
#[derive(Debug)]
pub struct ClickHouse {
    dir: TempDir,
    http: Port,
    native: Port,
    program: Option<Program>,
}

impl ClickHouse {
    /// Starts a server. If it is not installed, the test is reported as skipped.
    ///
    /// # Panics
    /// If it does not start, or is missing on Debian 12 with `CI=true`.
    #[must_use]
    pub fn start() -> Option<Self> {
        if !Path::new(PROGRAM).is_file() {
            missing();
            return None;
        }
        let mut server = Self {
            dir: TempDir::new(),
            http: Port::reserve(),
            native: Port::reserve(),
            program: None,
        };
        server.configure();
        server.restart();
        Some(server)
    }

    fn configure(&self) {
        let path = self.dir.path().display();
        let (http, native) = (self.http.number(), self.native.number());
        let config = format!(
            "<yandex>
<logger><level>warning</level><log>{path}/log</log><errorlog>{path}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{native}</tcp_port><listen_host>127.0.0.1</listen_host>
<max_concurrent_queries>100</max_concurrent_queries><mark_cache_size>67108864</mark_cache_size>
<path>{path}/data/</path><tmp_path>{path}/tmp/</tmp_path><users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
</yandex>
"
        );
        self.dir.write("config.xml", config);
        self.dir.write("users.xml", USERS);
    }

    /// Starts the server again, on the same port and with the same data.
    ///
    /// # Panics
    /// If it does not start.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        let config = self.dir.path().join("config.xml");
        let mut command = Command::new(PROGRAM);
        command
            .arg(format!("--config-file={}", config.display()))
            .current_dir(self.dir.path())
            .env("TZ", "UTC");
        let program = Program::start(&self.dir, "clickhouse", &mut command);
        self.program = Some(program.accepting(self.http.number()));
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(program) = self.program.take() {
            process::signal(program.pid(), Signal::KILL);
        }
    }

    /// Stops the server in an orderly way.
    pub fn stop(&mut self) {
        self.program = None;
    }

    /// Sends a signal to the server.
    ///
    /// # Panics
    /// If it does not run.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let program = self.program.as_ref().expect("it runs");
        process::signal(program.pid(), signal);
    }

    /// Process of the server, if it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.program.as_ref().map(Program::pid)
    }

    /// Port of its HTTP interface.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.http.number()
    }

    /// Port of its own protocol, over which servers of a cluster read each other.
    #[must_use]
    pub fn native_port(&self) -> u16 {
        self.native.number()
    }

    /// Directory of its files.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Runs a statement as the user `default`, and returns its rows.
    ///
    /// # Panics
    /// If ClickHouse reports an error.
    #[must_use]
    #[track_caller]
    pub fn rows(&self, statement: &str) -> String {
        let rows = self.try_rows(statement);
        rows.unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// Runs a statement as the user `default`, and returns its rows or the error.
    ///
    /// # Errors
    /// The text of ClickHouse, or of the connection.
    pub fn try_rows(&self, statement: &str) -> Result<String, String> {
        let text = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).map_err(text)?;
        let head = format!(
            "POST /?wait_end_of_query=1 HTTP/1.0\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            statement.len()
        );
        stream.write_all(head.as_bytes()).map_err(text)?;
        stream.write_all(statement.as_bytes()).map_err(text)?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response).map_err(text)?;
        let response = String::from_utf8_lossy(&response).into_owned();
        let (head, body) = response
            .split_once("\r\n\r\n")
            .ok_or("no response of HTTP")?;
        match head.split(' ').nth(1) {
            Some("200") => Ok(body.to_owned()),
            _ => Err(body.to_owned()),
        }
    }
}

impl Drop for ClickHouse {
    fn drop(&mut self) {
        // Its orderly end takes seconds, and its files are of no use.
        self.kill();
    }
}

fn missing() {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    if release.contains("VERSION_CODENAME=bookworm") {
        skip_outside_ci("clickhouse-server is not installed");
    } else {
        skip("clickhouse-server is not installed; Debian 12 alone has a package of it");
    }
}
