//! PHP as upstream of the server under test: `php-fpm` with a pool of its own, and `tests/peers/php` as the site.
//!
//! `.ci/setup` installs it. Scripts wait for files made by the test (gates), so that no test depends on time. Source:
//! PHP manual, "FastCGI Process Manager".

use std::path::Path;
use std::process::Command;

use crate::client::{Client, request};
use crate::dir::set_mode;
use crate::node::script;
use crate::peer;
use crate::programs::{Program, command_like};
use crate::server::{Builder, Server};
use crate::wait::wait_until;

/// The listener of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On `php.sock` in the server's folder.
    Unix,
    /// On the second port of the server.
    Tcp,
}

impl Listen {
    /// Its address for `fastcgi_pass` and `server`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unix => "unix:%%DIR%%/php.sock",
            Self::Tcp => "127.0.0.1:%%PORT2%%",
        }
    }
}

/// Puts the application in `site`, beside it a folder for its sessions and one for its gates.
///
/// # Panics
/// When the folders cannot be made.
#[must_use]
pub fn with_site(mut server: Builder) -> Builder {
    for name in ["app.php", "index.php"] {
        let content = std::fs::read(script("php").join(name)).expect("it is in the repository");
        server = server.bytes(&format!("site/{name}"), &content);
    }
    server.prepare(|dir| {
        for name in ["sessions", "gates"] {
            let folder = dir.join(name);
            std::fs::create_dir(&folder).expect("the folder is the test's");
            // Its processes may have another user.
            set_mode(&folder, 0o777);
        }
    })
}

/// Starts `php-fpm` beside a server, with this many processes and further lines of the pool; `None` if it is not
/// installed.
///
/// # Panics
/// If it does not start.
#[must_use]
#[track_caller]
pub fn start(server: &Server, listen: Listen, children: usize, more: &str) -> Option<Program> {
    let mut fpm = Command::new(command_like("php-fpm")?);
    let dir = server.dir().path().display();
    let user = if peer::is_root() { "user = nobody" } else { "" };
    let at = server.expand(listen.name());
    let at = at.trim_start_matches("unix:");
    let text = format!(
        "[global]\nerror_log = {dir}/fpm.log\nprocess_control_timeout = 5s\n[www]\n{user}\nlisten = {at}\nlisten.mode = 0666\npm = static\n\
         pm.max_children = {children}\nphp_admin_value[session.save_path] = {dir}/sessions\n\
         php_admin_value[upload_max_filesize] = 32M\nphp_admin_value[post_max_size] = 32M\n{more}\n"
    );
    server.dir().write("fpm.conf", text);
    fpm.args(["-F", "-y"]).arg(server.path("fpm.conf"));
    let program = Program::start(server.dir(), "php-fpm", &mut fpm);
    Some(match listen {
        Listen::Unix => program.listening(&server.path("php.sock")),
        Listen::Tcp => program.accepting(server.port_number(2)),
    })
}

/// Makes the folder of gates that requests name by `gates=NAME`.
///
/// # Panics
/// When it cannot be made.
pub fn gates(server: &Server, name: &str) {
    let folder = server.path("gates").join(name);
    std::fs::create_dir(&folder).expect("the folder is the test's");
    set_mode(&folder, 0o777);
}

/// Opens a gate.
///
/// # Panics
/// When its file cannot be made.
pub fn open(server: &Server, name: &str, number: usize) {
    let file = Path::new("gates").join(name).join(number.to_string());
    std::fs::write(server.path(&file.to_string_lossy()), "").expect("the folder is the test's");
}

/// Waits until a request for `/slow` with these gates has reached PHP.
///
/// # Panics
/// When it never does.
#[track_caller]
pub fn wait_until_begun(server: &Server, name: &str) {
    let file = server.path("gates").join(name).join("begun");
    wait_until("the request has reached PHP", || file.exists());
}

/// An unfinished response: the part that was read grows.
#[derive(Debug)]
pub struct Page {
    /// The connection it comes on.
    pub client: Client,
    /// Received bytes, framing included.
    pub seen: String,
}

impl Page {
    /// Requests the page.
    #[must_use]
    pub fn ask(server: &Server, target: &str) -> Self {
        let mut client = server.client();
        client.send(request("GET", target, &[]));
        let seen = String::new();
        Self { client, seen }
    }

    /// Reads until this has come.
    ///
    /// # Panics
    /// When the response ends before.
    #[track_caller]
    pub fn until(&mut self, text: &str) {
        while !self.seen.contains(text) {
            self.seen += &String::from_utf8_lossy(&self.client.bytes(1));
        }
    }
}
