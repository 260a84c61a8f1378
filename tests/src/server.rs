//! A server under test: its directory, its ports, its processes, and its exit.
//!
//! A configuration is a template: `%%DIR%%` is the server's own directory, `%%PORT%%` and `%%PORT2%%` to `%%PORT9%%`
//! are reserved ports, and `%%USER%%` is a `user` line if the tests run as root. [`Server::http`] adds the lines that
//! every server needs around the content of an `http` block; [`Server::whole`] uses the file unchanged.
//!
//! Every server is stopped with QUIT at the end of its test. The test fails if the exit status is not 0, or if the log
//! has an alert, an emergency or a panic that the test did not announce.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::client::Client;
use crate::command::spawn;
use crate::dir::TempDir;
use crate::peer;
use crate::port::Port;
use crate::process;
use crate::response::Response;
use crate::template::{expand, placeholder, temp_paths};
use crate::wait::{DEADLINE, holds_within, wait_until};

/// How many ports a template may name.
const PORTS_MAX: usize = 9;

/// Texts that no log may hold unless the test allows them.
const ALARMS: [&str; 4] = ["[alert]", "[emerg]", "panicked", "AddressSanitizer"];

/// Path that is started instead of the binary under test if it exists: a test can put another binary there.
pub const OWN_BINARY: &str = "bin/server";

/// A server to be started.
#[derive(Debug)]
pub struct Builder {
    dir: TempDir,
    ports: Vec<Port>,
    template: String,
    allowed: Vec<String>,
    daemon: bool,
}

/// A running server; dropping it stops it and checks how it ended.
#[derive(Debug)]
pub struct Server {
    dir: TempDir,
    ports: Vec<Port>,
    allowed: Vec<String>,
    started: Option<Started>,
}

#[derive(Debug)]
enum Started {
    Foreground(Child),
    Daemon(u32),
}

impl Builder {
    /// Adds a file below the directory; its text may hold placeholders.
    #[must_use]
    pub fn file(mut self, name: &str, text: &str) -> Self {
        let text = self.expand(text);
        self.dir.write(name, text);
        self
    }

    /// Adds a file below the directory, unchanged.
    #[must_use]
    pub fn bytes(self, name: &str, content: &[u8]) -> Self {
        self.dir.write(name, content);
        self
    }

    /// Adds a file of `size_bytes` zeros that takes no room on the disk.
    ///
    /// # Panics
    /// When the file cannot be made.
    #[must_use]
    pub fn zeros(self, name: &str, size_bytes: u64) -> Self {
        self.dir.write(name, "");
        let file = File::options().write(true).open(self.dir.path().join(name));
        file.and_then(|file| file.set_len(size_bytes))
            .expect("a sparse file can be made");
        self
    }

    /// Lets the logs hold alarm lines that contain `text`.
    #[must_use]
    pub fn allow(mut self, text: &str) -> Self {
        self.allowed.push(text.to_owned());
        self
    }

    /// Lets the server put itself in the background (the template must not have `daemon off`).
    #[must_use]
    pub fn daemon(mut self) -> Self {
        self.daemon = true;
        self
    }

    /// Does something with the directory before the start, for links and modes.
    #[must_use]
    pub fn prepare(self, step: impl FnOnce(&Path)) -> Self {
        step(self.dir.path());
        self
    }

    /// Writes the configuration without starting anything.
    #[must_use]
    pub fn written(mut self) -> Server {
        let text = self.expand(&self.template.clone());
        self.dir.write("nginx.conf", text);
        Server {
            dir: self.dir,
            ports: self.ports,
            allowed: self.allowed,
            started: None,
        }
    }

    /// Starts the server and waits until its first port accepts.
    ///
    /// # Panics
    /// When it exits or does not accept; the message holds its output and log.
    #[must_use]
    #[track_caller]
    pub fn start(self) -> Server {
        let daemon = self.daemon;
        let mut server = self.written();
        server.launch(daemon);
        server
    }

    fn expand(&mut self, template: &str) -> String {
        let needed = (1..=PORTS_MAX)
            .rev()
            .find(|&n| template.contains(&placeholder(n)))
            .unwrap_or(0);
        while self.ports.len() < needed {
            self.ports.push(Port::reserve());
        }
        expand(template, self.dir.path(), &self.ports)
    }
}

impl Server {
    /// A server with `template` inside its `http` block.
    #[must_use]
    pub fn http(template: &str) -> Builder {
        Self::http_with("", template)
    }

    /// A server with `main` in the main context and `template` inside its `http` block.
    #[must_use]
    pub fn http_with(main: &str, template: &str) -> Builder {
        let log = if main.contains("error_log ") {
            ""
        } else {
            "error_log %%DIR%%/error.log info;"
        };
        let outside = template.split("server {").next().unwrap_or_default();
        let access = if outside.contains("access_log ") {
            ""
        } else {
            "access_log %%DIR%%/access.log;"
        };
        let daemon = if main.contains("daemon ") {
            ""
        } else {
            "daemon off;"
        };
        let text = format!(
            "%%USER%%\n{daemon}\npid %%DIR%%/nginx.pid;\n{log}\n{main}\n\
             events {{ worker_connections 512; }}\n\
             http {{\n{access}\n{}\n{template}\n}}\n",
            temp_paths()
        );
        Self::whole(&text)
    }

    /// A server with `template` as its whole configuration file.
    #[must_use]
    pub fn whole(template: &str) -> Builder {
        Builder {
            dir: TempDir::new(),
            ports: Vec::new(),
            template: template.to_owned(),
            allowed: Vec::new(),
            daemon: false,
        }
    }

    /// Takes over a server that a command of the test has put in the background.
    ///
    /// # Panics
    /// When its pid file never appears or it does not accept.
    #[track_caller]
    pub fn adopt(&mut self, pid_file: &str) {
        let mut pid = None;
        wait_until("the pid file is written", || {
            pid = self.dir.read(pid_file).trim().parse().ok();
            pid.is_some()
        });
        self.started = pid.map(Started::Daemon);
        self.wait_for_accept();
    }

    /// The directory everything of this server is in.
    #[must_use]
    pub fn dir(&self) -> &TempDir {
        &self.dir
    }

    /// A path below the directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The port of `%%PORT%%`.
    ///
    /// # Panics
    /// If the template has none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port_number(1)
    }

    /// The port of `%%PORTn%%`; 1 is `%%PORT%%`.
    ///
    /// # Panics
    /// If the template does not have it.
    #[must_use]
    pub fn port_number(&self, n: usize) -> u16 {
        self.ports[n - 1].number()
    }

    /// The text with this server's directory and ports in place.
    #[must_use]
    pub fn expand(&self, template: &str) -> String {
        expand(template, self.dir.path(), &self.ports)
    }

    /// Writes the configuration anew; a signal makes the server read it.
    pub fn rewrite_conf(&self, change: impl FnOnce(String) -> String) {
        let text = change(self.dir.read("nginx.conf"));
        self.dir.write("nginx.conf", self.expand(&text));
    }

    /// The arguments that name this server's directory, file and first log.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let dir = self.dir.path().display();
        [
            "-p".into(),
            format!("{dir}/"),
            "-c".into(),
            "nginx.conf".into(),
            "-e".into(),
            "error.log".into(),
        ]
        .into()
    }

    /// A fresh connection to the first port.
    #[must_use]
    #[track_caller]
    pub fn client(&self) -> Client {
        Client::connect(self.port())
    }

    /// One GET on a connection of its own.
    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.client().get(path)
    }

    /// The started process, or the one named by the pid file.
    ///
    /// # Panics
    /// If the server was never started.
    #[must_use]
    pub fn pid(&self) -> u32 {
        match self
            .started
            .as_ref()
            .expect("only a started server has a process")
        {
            Started::Foreground(child) => child.id(),
            Started::Daemon(pid) => *pid,
        }
    }

    /// The worker processes that run now.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        process::children(self.pid())
    }

    /// Sends a signal to the supervisor.
    pub fn signal(&self, signal: Signal) {
        assert!(
            process::signal(self.pid(), signal),
            "the server is not there to receive {signal:?}"
        );
    }

    /// Contents of the error log.
    #[must_use]
    pub fn error_log(&self) -> String {
        self.dir.read("error.log")
    }

    /// Waits until a file below the directory holds `text`, and returns all of it.
    ///
    /// # Panics
    /// When it never does.
    #[track_caller]
    pub fn wait_for_text(&self, file: &str, text: &str) -> String {
        let found = holds_within(DEADLINE, || self.dir.read(file).contains(text));
        let content = self.dir.read(file);
        assert!(found, "{file} never held {text:?}; it holds:\n{content}");
        content
    }

    /// Waits for the process to end by itself and returns its exit code (-1: by a signal).
    ///
    /// # Panics
    /// When it does not end before the deadline.
    #[track_caller]
    pub fn wait_for_exit(&mut self) -> i32 {
        match self.started.take() {
            Some(Started::Foreground(mut child)) => {
                let status = wait_for(&mut child, DEADLINE);
                self.started = status.is_none().then_some(Started::Foreground(child));
                status
                    .expect("the server ends before the deadline")
                    .code()
                    .unwrap_or(-1)
            }
            Some(Started::Daemon(pid)) => {
                wait_until("the daemon ends", || !process::is_alive(pid));
                0
            }
            None => panic!("the server was never started"),
        }
    }

    /// Stops the server and checks its exit, as a drop does, at a chosen moment.
    ///
    /// # Panics
    /// If it ends badly or its log has an alarm.
    #[track_caller]
    pub fn stop(mut self) {
        let findings = self.end();
        assert!(findings.is_empty(), "{findings}");
    }

    /// Starts the server, also once more after its end.
    #[track_caller]
    pub fn launch(&mut self, daemon: bool) {
        let output = File::create(self.path("output")).expect("the test's directory is writable");
        let second = output.try_clone().expect("a file can be opened twice");
        let own = self.path(OWN_BINARY);
        let binary = if own.exists() { &own } else { peer::binary() };
        let mut command = Command::new(binary);
        command.args(self.arguments()).current_dir(self.dir.path());
        command.stdin(Stdio::null()).stdout(output).stderr(second);
        let mut child = spawn(&mut command);
        if daemon {
            let status = wait_for(&mut child, DEADLINE).expect("the daemon's parent returns");
            assert!(
                status.success(),
                "the daemon did not start: {}",
                self.evidence()
            );
            self.adopt("nginx.pid");
        } else {
            self.started = Some(Started::Foreground(child));
            self.wait_for_accept();
        }
    }

    /// A socket accepts before its server handles signals: nginx loses a HUP that comes before its
    /// first worker, and writes its pid file before that.
    #[track_caller]
    fn wait_for_accept(&mut self) {
        let Some(port) = self.ports.first().map(Port::number) else {
            return;
        };
        let mut exited = None;
        let accepts = holds_within(DEADLINE, || {
            if let Some(Started::Foreground(child)) = &mut self.started {
                exited = child.try_wait().ok().flatten();
            }
            let single = self.dir.read("nginx.conf").contains("master_process off;");
            let ready = exited.is_none() && (single || !self.workers().is_empty());
            exited.is_some() || ready && Client::try_connect_to("127.0.0.1", port).is_ok()
        });
        if let Some(status) = exited {
            self.started = None;
            panic!(
                "the server exited at its start with {status}: {}",
                self.evidence()
            );
        }
        assert!(
            accepts,
            "the server does not accept on port {port}: {}",
            self.evidence()
        );
    }

    fn evidence(&self) -> String {
        let (output, log) = (self.dir.read("output"), self.error_log());
        let conf = self.dir.read("nginx.conf");
        format!("\n-- output\n{output}\n-- error.log\n{log}\n-- nginx.conf\n{conf}")
    }

    /// Ends the processes; returns the faults, or an empty text.
    fn end(&mut self) -> String {
        let ending = match self.started.take() {
            None => String::new(),
            Some(Started::Foreground(child)) => end_child(child),
            Some(Started::Daemon(pid)) => end_daemon(pid),
        };
        let alarms = self.alarms();
        if ending.is_empty() && alarms.is_empty() {
            return String::new();
        }
        format!("{ending}\n{}\n{}", alarms.join("\n"), self.evidence())
    }

    fn alarms(&self) -> Vec<String> {
        let text = self.error_log() + "\n" + &self.dir.read("output");
        let lines = text
            .lines()
            .filter(|line| ALARMS.iter().any(|alarm| line.contains(alarm)));
        let lines = lines.filter(|line| !self.allowed.iter().any(|allowed| line.contains(allowed)));
        lines.map(str::to_owned).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let findings = self.end();
        if !findings.is_empty() && !std::thread::panicking() {
            panic!("{findings}");
        }
        if std::thread::panicking() {
            eprintln!("the server of the failed test: {}", self.evidence());
        }
    }
}

fn end_child(mut child: Child) -> String {
    let pid = child.id();
    process::signal(pid, Signal::QUIT);
    if let Some(status) = wait_for(&mut child, DEADLINE) {
        return if status.success() {
            String::new()
        } else {
            format!("the server ended with {status}")
        };
    }
    // Its workers are known only while it lives, and must not outlive the test.
    let workers = process::children(pid);
    process::signal(pid, Signal::TERM);
    let _ = wait_for(&mut child, Duration::from_secs(1));
    for worker in workers {
        process::signal(worker, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
    "the server did not end after QUIT".to_owned()
}

fn end_daemon(pid: u32) -> String {
    process::signal(pid, Signal::QUIT);
    if holds_within(DEADLINE, || !process::is_alive(pid)) {
        return String::new();
    }
    process::signal(pid, Signal::KILL);
    "the daemon did not end after QUIT".to_owned()
}

fn wait_for(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let mut status = None;
    holds_within(limit, || {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    status
}
