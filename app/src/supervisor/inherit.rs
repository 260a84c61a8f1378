//! Listening sockets inherited from the process that started this one.
//!
//! There are two cases: a supervisor that replaces its binary sends `NGINX=fd;fd;` in the environment, and a service
//! manager sends `LISTEN_FDS` and `LISTEN_PID`. Only descriptors are passed. The system returns their properties, and
//! they are matched with the configuration by address. Others are closed. Source: nginx documentation, "Upgrading
//! Executable on the Fly"; sd_listen_fds(3).

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use server_base::errlog::Level;
use server_base::listen::{Listen, ListenAddr, SocketOptions};
use sys::inherit::{self, Inherited, LocalAddr};
use sys::process;

use super::listeners::{Listener, Origin};
use crate::console::Console;

/// Inherited descriptors and arguments of this process.
#[derive(Debug, Default)]
pub(crate) struct Inheritance {
    /// The supervisor that started this one in its place.
    pub(crate) predecessor: Option<u32>,
    /// Its sockets, and those of a service manager.
    pub(crate) listeners: Vec<Listener>,
}

impl Inheritance {
    /// Adopts the sockets named in the environment. Invalid entries are reported and skipped.
    pub(crate) fn take(console: &Console) -> Self {
        let mut taken = Self::default();
        if let Some(text) = env::var_os(SOCKETS) {
            let shown = text.to_string_lossy();
            console.notice(format_args!("using inherited sockets from \"{shown}\""));
            taken.predecessor = Some(process::parent_id());
            let kept = env::var_os(ACTIVATED).unwrap_or_default();
            let managed = numbers(&kept, ACTIVATED, console);
            for number in numbers(&text, SOCKETS, console) {
                let origin = if managed.contains(&number) {
                    Origin::Manager
                } else {
                    Origin::Predecessor
                };
                taken.adopt(number, origin, console);
            }
        }
        let count = activated(
            env::var_os("LISTEN_PID").as_deref(),
            env::var_os("LISTEN_FDS").as_deref(),
        );
        if count > 0 {
            console.notice(format_args!("using {count} sockets from LISTEN_FDS"));
        }
        for number in FIRST_ACTIVATED..FIRST_ACTIVATED + count {
            taken.adopt(number, Origin::Manager, console);
        }
        taken
    }

    fn adopt(&mut self, number: i32, origin: Origin, console: &Console) {
        let Inherited {
            socket,
            address,
            listens,
            reuseport,
            multipath,
        } = match inherit::adopt(number) {
            Ok(inherited) => inherited,
            Err(error) => {
                let what = format_args!("getsockname() of the inherited socket #{number}");
                return console.failed(Level::Crit, what, &error);
            }
        };
        let address = address.map(|address| match address {
            LocalAddr::Inet(address) => ListenAddr::Inet(address),
            LocalAddr::Unix(path) => ListenAddr::Unix(path),
        });
        let Some(addr) = address else {
            return console.report(
                Level::Crit,
                format_args!("the inherited socket #{number} has an unsupported protocol family"),
            );
        };
        if !listens {
            // A socket for datagrams, which nginx may have: nothing here listens on one.
            return console.notice(format_args!(
                "the inherited socket #{number} ({addr}) is not listening, closed"
            ));
        }
        let known = self.listeners.iter_mut();
        match known.into_iter().find(|known| *known.addr() == addr) {
            Some(known) => known.add(socket),
            None => {
                let options = SocketOptions {
                    reuseport,
                    multipath,
                    ..SocketOptions::default()
                };
                let listen = Listen { addr, options };
                self.listeners.push(Listener::given(listen, socket, origin));
            }
        }
    }
}

/// The numbers of `fd;fd;`; from the first wrong one on, the rest is ignored, as in nginx.
fn numbers(text: &OsStr, variable: &str, console: &Console) -> Vec<i32> {
    let mut found = Vec::new();
    let mut rest = text.as_bytes();
    let is_end = |byte: &u8| matches!(byte, b';' | b':');
    while let Some(at) = rest.iter().position(is_end) {
        let Some(number) = number(&rest[..at]) else {
            let shown = String::from_utf8_lossy(rest);
            console.report(
                Level::Emerg,
                format_args!(
                    "invalid socket number \"{shown}\" in {variable} environment variable, \
                     ignoring the rest of the variable"
                ),
            );
            return found;
        };
        found.push(number);
        rest = &rest[at + 1..];
    }
    if !rest.is_empty() {
        let shown = String::from_utf8_lossy(rest);
        console.report(
            Level::Emerg,
            format_args!(
                "invalid socket number \"{shown}\" in {variable} environment variable, ignoring"
            ),
        );
    }
    found
}

fn number(digits: &[u8]) -> Option<i32> {
    let plain = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits)
        .ok()
        .filter(|_| plain)?
        .parse()
        .ok()
}

/// Returns the number of sockets that a service manager has opened for this process.
fn activated(pid: Option<&OsStr>, count: Option<&OsStr>) -> i32 {
    let value = |text: Option<&OsStr>| number(text?.as_bytes());
    let ours = value(pid).and_then(|pid| u32::try_from(pid).ok()) == Some(process::id());
    let count = if ours { value(count) } else { None };
    count.unwrap_or(0).min(ACTIVATED_MAX)
}

/// Variable with the listening sockets for the next binary. It is nginx's, so that the next binary may be nginx.
pub(super) const SOCKETS: &str = "NGINX";

/// Variable with the numbers of the sockets from a service manager. Files of these sockets must outlive the server.
pub(super) const ACTIVATED: &str = "FIRSTBYTE_ACTIVATED";

/// Variables for this process, which its children must not get.
pub(super) const OWN_VARIABLES: &[&str] = &[
    SOCKETS,
    ACTIVATED,
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
];

/// The number of the first socket from a service manager.
const FIRST_ACTIVATED: i32 = 3;

/// Most sockets accepted from a service manager.
const ACTIVATED_MAX: i32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use server_base::errlog::ErrorLog;

    fn read(text: &str) -> Vec<i32> {
        let console = Console::of_log(ErrorLog::new(Vec::new()));
        numbers(OsStr::new(text), SOCKETS, &console)
    }

    #[test]
    fn numbers_end_with_a_semicolon_or_colon() {
        assert_eq!(read("6;7:12;"), [6, 7, 12]);
        assert_eq!(read(""), [0; 0]);
    }

    #[test]
    fn from_a_wrong_number_on_the_rest_is_ignored() {
        assert_eq!(read("6;x;7;"), [6]);
        assert_eq!(read("6;;7;"), [6]);
        assert_eq!(read("6;7"), [6]);
        assert_eq!(read("6;-7;"), [6]);
        assert_eq!(read("6;+7;"), [6]);
        assert_eq!(read("2147483647;2147483648;"), [i32::MAX]);
    }

    #[test]
    fn sockets_of_a_manager_are_meant_for_one_process() {
        let count =
            |pid: &str, count: &str| activated(Some(OsStr::new(pid)), Some(OsStr::new(count)));
        let own = process::id().to_string();
        assert_eq!(count(&own, "2"), 2);
        assert_eq!(count(&own, "4096"), ACTIVATED_MAX);
        assert_eq!(count(&own, "4097"), ACTIVATED_MAX);
        assert_eq!(count(&own, "-2"), 0);
        assert_eq!(count(&own, ""), 0);
        assert_eq!(count("1", "2"), 0);
        assert_eq!(activated(None, Some(OsStr::new("2"))), 0);
    }
}
