//! The listening sockets of one generation of the configuration.
//!
//! A socket whose address was named before is taken over, so that no connection waiting in its
//! queue is lost; a new address is bound, with nginx's five tries while it is in use. Sockets are
//! shared between generations: one closes when the last generation that names it is gone.
//! Source: nginx documentation, `listen`.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use driver::sys::listen::{self, BindError};
use server_core::errlog::Level;
use server_core::{Listen, ListenAddr};

use super::Reported;
use crate::console::Console;

/// One address and its sockets: one, or with `reuseport` one for each thread.
#[derive(Debug)]
pub(crate) struct Listener {
    listen: Listen,
    sockets: Vec<Rc<OwnedFd>>,
}

impl Listener {
    /// The address as the worker looks it up.
    pub(crate) fn key(&self) -> String {
        self.listen.addr.to_string()
    }

    pub(crate) fn sockets(&self) -> &[Rc<OwnedFd>] {
        &self.sockets
    }
}

/// Opens what `listens` names, taking over from `old` what it has.
///
/// # Errors
/// An address could not be bound, which has been reported; nothing of `old` has changed for its
/// clients.
pub(crate) fn open(
    listens: &[Listen],
    threads: u32,
    old: &[Listener],
    console: &Console,
) -> Result<Vec<Listener>, Reported> {
    let mut listeners: Vec<Listener> = listens
        .iter()
        .map(|listen| taken_over(listen, threads, old, console))
        .collect();
    let result = fill_all(&mut listeners, threads, console);
    if result.is_err() {
        // What was bound just now closes, and its files must go with it.
        remove_unix_files(&listeners, old, console);
    }
    result.map(|()| listeners)
}

fn fill_all(listeners: &mut [Listener], threads: u32, console: &Console) -> Result<(), Reported> {
    for _ in 0..BIND_TRIES {
        let mut in_use = false;
        for listener in &mut *listeners {
            in_use |= fill(listener, threads, console)? == Bind::InUse;
        }
        if !in_use {
            return Ok(());
        }
        console.report(
            Level::Notice,
            format_args!("try again to bind() after {}ms", BIND_PAUSE.as_millis()),
        );
        std::thread::sleep(BIND_PAUSE);
    }
    console.report(Level::Emerg, format_args!("still could not bind()"));
    Err(Reported)
}

/// Applies options that changed to the sockets that were taken over. nginx only warns of failures.
pub(crate) fn apply_options(listeners: &[Listener], old: &[Listener], console: &Console) {
    for listener in listeners {
        let before = old
            .iter()
            .find(|old| old.listen.addr == listener.listen.addr);
        if before.is_none_or(|before| before.listen.options == listener.listen.options) {
            continue;
        }
        let Listen { addr, options } = &listener.listen;
        for socket in &listener.sockets {
            for refused in listen::reconfigure(socket, addr, options) {
                report_refused(&refused, addr, console);
            }
        }
    }
}

/// Binds every address as a test: one that is in use is taken for the running server's.
///
/// # Errors
/// An address cannot be bound for another reason, which has been reported.
pub(crate) fn test(listens: &[Listen], console: &Console) -> Result<(), Reported> {
    for listen in listens {
        match listen::bind(&listen.addr, &listen.options) {
            Ok(_socket) => {
                if let ListenAddr::Unix(path) = &listen.addr {
                    unlink(path, console);
                }
            }
            Err(error) if is_in_use(&error) => {}
            Err(error) => return Err(report_failed(&error, &listen.addr, console)),
        }
    }
    Ok(())
}

/// Removes the files of UNIX-domain sockets that `gone` has and `kept` has not.
pub(crate) fn remove_unix_files(gone: &[Listener], kept: &[Listener], console: &Console) {
    for listener in gone.iter().filter(|listener| !listener.sockets.is_empty()) {
        let is_kept = kept
            .iter()
            .any(|kept| kept.listen.addr == listener.listen.addr);
        if let (ListenAddr::Unix(path), false) = (&listener.listen.addr, is_kept) {
            unlink(path, console);
        }
    }
}

fn unlink(path: &Path, console: &Console) {
    if let Err(error) = std::fs::remove_file(path) {
        console.failed(
            Level::Emerg,
            format_args!("unlink() {}", path.display()),
            &error,
        );
    }
}

fn taken_over(listen: &Listen, threads: u32, old: &[Listener], console: &Console) -> Listener {
    let before = old.iter().find(|old| old.listen.addr == listen.addr);
    let wanted = if listen.options.reuseport {
        threads as usize
    } else {
        1
    };
    let sockets: Vec<Rc<OwnedFd>> = before.map_or_else(Vec::new, |old| {
        old.sockets.iter().take(wanted).cloned().collect()
    });
    let was_alone = before.is_some_and(|old| !old.listen.options.reuseport);
    if listen.options.reuseport && was_alone {
        // More sockets can share the address only if the first allows it.
        for refused in sockets
            .iter()
            .filter_map(|socket| listen::allow_sharing(socket).err())
        {
            report_refused(&refused, &listen.addr, console);
        }
    }
    Listener {
        listen: listen.clone(),
        sockets,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Bind {
    Done,
    InUse,
}

fn fill(listener: &mut Listener, threads: u32, console: &Console) -> Result<Bind, Reported> {
    let Listen { addr, options } = &listener.listen;
    let wanted = if options.reuseport {
        threads as usize
    } else {
        1
    };
    while listener.sockets.len() < wanted {
        match listen::bind(addr, options) {
            Ok(bound) => {
                for refused in &bound.refused {
                    report_refused(refused, addr, console);
                }
                listener.sockets.push(Rc::new(bound.socket));
            }
            Err(error) => {
                let in_use = is_in_use(&error);
                let reported = report_failed(&error, addr, console);
                return if in_use {
                    Ok(Bind::InUse)
                } else {
                    Err(reported)
                };
            }
        }
    }
    Ok(Bind::Done)
}

fn is_in_use(error: &BindError) -> bool {
    error.error.kind() == io::ErrorKind::AddrInUse
}

/// `bind() to 0.0.0.0:80 failed (98: Address already in use)`
fn report_failed(error: &BindError, addr: &ListenAddr, console: &Console) -> Reported {
    let to = if matches!(error.call, "bind()" | "listen()") {
        "to "
    } else {
        ""
    };
    console.failed(
        Level::Emerg,
        format_args!("{} {to}{addr}", error.call),
        &error.error,
    );
    Reported
}

fn report_refused(refused: &BindError, addr: &ListenAddr, console: &Console) {
    let reason = conf::os_error(&refused.error);
    console.report(
        Level::Alert,
        format_args!("{} {addr} failed ({reason}), ignored", refused.call),
    );
}

/// How often an address in use is tried.
const BIND_TRIES: u32 = 5;

/// The pause between tries.
const BIND_PAUSE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use server_core::SocketOptions;
    use server_core::errlog::ErrorLog;
    use std::net::TcpListener;

    fn console() -> Console {
        Console::of_log(ErrorLog::new(Vec::new()))
    }

    fn listen(port: u16, reuseport: bool) -> Listen {
        let options = SocketOptions {
            reuseport,
            ..SocketOptions::default()
        };
        Listen {
            addr: ListenAddr::Inet(([127, 0, 0, 1], port).into()),
            options,
        }
    }

    fn free_port() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        listener.local_addr().expect("address").port()
    }

    #[test]
    fn known_address_keeps_its_socket() {
        let port = free_port();
        let first = open(&[listen(port, false)], 2, &[], &console()).expect("bind");
        let second = open(&[listen(port, false)], 2, &first, &console()).expect("taken over");
        assert!(Rc::ptr_eq(&first[0].sockets[0], &second[0].sockets[0]));
        assert_eq!(second[0].key(), format!("127.0.0.1:{port}"));
    }

    #[test]
    fn reuseport_has_a_socket_for_each_thread_and_grows_from_one() {
        let port = free_port();
        let alone = open(&[listen(port, false)], 3, &[], &console()).expect("bind");
        let shared = open(&[listen(port, true)], 3, &alone, &console()).expect("grown");
        assert_eq!(shared[0].sockets.len(), 3);
        apply_options(&shared, &alone, &console());
        let back = open(&[listen(port, false)], 3, &shared, &console()).expect("shrunk");
        assert_eq!(back[0].sockets.len(), 1);
        assert!(Rc::ptr_eq(&back[0].sockets[0], &alone[0].sockets[0]));
    }

    #[test]
    fn test_takes_an_address_in_use_for_the_running_server() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = taken.local_addr().expect("address").port();
        assert!(test(&[listen(port, false)], &console()).is_ok());
        let nowhere = ListenAddr::Inet(([192, 0, 2, 1], port).into());
        let listen = Listen {
            addr: nowhere,
            options: SocketOptions::default(),
        };
        assert!(test(&[listen], &console()).is_err());
    }
}
