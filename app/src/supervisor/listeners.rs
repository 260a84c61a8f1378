//! The listening sockets of one generation of the configuration.
//!
//! A socket is kept if its address was configured before, so that no connection in its queue is lost. A new address is
//! bound, with nginx's five tries while it is in use. Generations share sockets, and so do this process, its
//! predecessor and its successor. A socket closes after its last user. Source: nginx documentation, `listen`.

pub(crate) mod beside;
pub(crate) mod dashboard;
mod stale;
mod unix_files;

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use driver::listen::{self, BindError, Sharing};
use server_base::errlog::Level;
use server_base::listen::{Listen, ListenAddr};

use crate::console::{Console, Logged};
pub(crate) use unix_files::{remove_unix_files, unlink};

/// One address and its sockets: one, or with `reuseport` one for each thread.
#[derive(Debug, Clone)]
pub(crate) struct Listener {
    listen: Listen,
    sockets: Vec<Rc<OwnedFd>>,
    /// Required number of sockets.
    wanted: usize,
    /// How further sockets are bound.
    sharing: Sharing,
    origin: Origin,
    /// Its sockets are bound beside those of an address that is given up, and do not listen yet.
    beside: bool,
}

/// Origin of the sockets of an address, which decides the owner of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// They were bound here.
    Own,
    /// Inherited from the supervisor that started this process.
    Predecessor,
    /// Inherited from a service manager, which keeps them after the end of this server.
    Manager,
}

/// Another supervisor that shares sockets with this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherServer {
    /// No other server.
    None,
    /// The one that started this one.
    Predecessor,
    /// The one that this one has started.
    Successor,
}

/// State of binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bind {
    /// Every address has its sockets.
    Done,
    /// An address is in use by somebody else.
    InUse,
}

impl Listener {
    /// An address that was given to this process, with its first socket.
    pub(crate) fn given(listen: Listen, socket: OwnedFd, origin: Origin) -> Self {
        Self {
            listen,
            sockets: vec![Rc::new(socket)],
            wanted: 1,
            sharing: Sharing::AsConfigured,
            origin,
            beside: false,
        }
    }

    /// One more socket that was given for the address.
    pub(crate) fn add(&mut self, socket: OwnedFd) {
        self.sockets.push(Rc::new(socket));
    }

    /// The address.
    pub(crate) fn addr(&self) -> &ListenAddr {
        &self.listen.addr
    }

    /// Returns the origin of the sockets.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns whether no other process serves or keeps the sockets.
    fn is_ours(&self, other_server: OtherServer) -> bool {
        match self.origin {
            Origin::Own => other_server != OtherServer::Successor,
            Origin::Predecessor => other_server == OtherServer::None,
            Origin::Manager => false,
        }
    }

    /// Whether `listen` can have the sockets. Only those bound here are known to differ in IPV6_V6ONLY.
    fn fits(&self, listen: &Listen) -> bool {
        match self.origin {
            Origin::Own => self.listen.shares_socket(listen),
            Origin::Predecessor | Origin::Manager => self.listen.addr == listen.addr,
        }
    }

    /// The address as the worker looks it up.
    pub(crate) fn key(&self) -> String {
        self.listen.key()
    }

    pub(crate) fn sockets(&self) -> &[Rc<OwnedFd>] {
        &self.sockets
    }
}

/// Returns the listeners of `listens` with their sockets from `old`; other listeners are still to be bound.
pub(crate) fn prepare(
    listens: &[Listen],
    threads: u32,
    old: &[Listener],
    other_server: OtherServer,
    console: &Console,
) -> Vec<Listener> {
    let unclaimed = |old: &&Listener| !listens.iter().any(|listen| old.fits(listen));
    let given_up: Vec<&Listener> = old
        .iter()
        .filter(|old| old.is_ours(other_server))
        .filter(unclaimed)
        .collect();
    let prepared = listens.iter().map(|listen| {
        let mut listener = taken_over(listen, threads, old, console);
        if listener.sockets.is_empty() {
            listener.beside = share_with(&given_up, listen, console);
        }
        listener
    });
    prepared.collect()
}

/// Lets `listen` be bound beside sockets of addresses that are given up, if it has a part of these addresses: 127.0.0.1:80
/// becomes *:80. Returns whether there are such sockets.
fn share_with(given_up: &[&Listener], listen: &Listen, console: &Console) -> bool {
    let overlaps = |old: &&&Listener| old.listen.overlaps(listen);
    let mut shares = false;
    for old in given_up.iter().filter(overlaps) {
        for socket in &old.sockets {
            match listen::allow_sharing(socket) {
                Ok(()) => shares = true,
                Err(refused) => report_refused(&refused, &old.listen.addr, console),
            }
        }
    }
    shares
}

/// Tries once to bind each listener without a socket.
///
/// # Errors
/// An address cannot be bound, for another reason than that it is in use. The error has been reported.
pub(crate) fn fill(listeners: &mut [Listener], console: &Console) -> Result<Bind, Logged> {
    let mut result = Bind::Done;
    for listener in listeners {
        if fill_one(listener, console)? == Bind::InUse {
            result = Bind::InUse;
        }
    }
    if result == Bind::InUse {
        console.notice(format_args!(
            "try again to bind() after {}ms",
            BIND_PAUSE.as_millis()
        ));
    }
    Ok(result)
}

/// Binds listeners without sockets, and waits for addresses in use: for a process that does not serve yet.
///
/// # Errors
/// An address could not be bound, which has been reported.
pub(crate) fn fill_waiting(listeners: &mut [Listener], console: &Console) -> Result<(), Logged> {
    for _ in 0..BIND_TRIES {
        if fill(listeners, console)? == Bind::Done {
            return Ok(());
        }
        std::thread::sleep(BIND_PAUSE);
    }
    Err(give_up(console))
}

/// Reports that an address has been in use for all of the tries.
pub(crate) fn give_up(console: &Console) -> Logged {
    console.report(Level::Emerg, format_args!("still could not bind()"));
    Logged
}

/// Applies all options to the sockets that this process inherited: those set by the program that bound them are
/// not known.
pub(crate) fn apply_options_to_given(listeners: &[Listener], console: &Console) {
    let given = |listener: &&Listener| listener.origin != Origin::Own;
    for listener in listeners.iter().filter(given) {
        reconfigure(listener, console);
    }
}

/// Applies changed options to adopted sockets. As in nginx, failures are only warnings.
pub(crate) fn apply_options(listeners: &[Listener], old: &[Listener], console: &Console) {
    for listener in listeners {
        let before = old.iter().find(|old| old.fits(&listener.listen));
        if before.is_none_or(|before| before.listen.options == listener.listen.options) {
            continue;
        }
        reconfigure(listener, console);
    }
}

fn reconfigure(listener: &Listener, console: &Console) {
    let Listen { addr, options } = &listener.listen;
    for socket in &listener.sockets {
        for refused in listen::reconfigure(socket, addr, options) {
            report_refused(&refused, addr, console);
        }
    }
}

/// Binds every address as a test. An address in use is taken for that of the running server.
///
/// # Errors
/// An address cannot be bound for another reason, which has been reported.
pub(crate) fn test(listens: &[Listen], console: &Console) -> Result<(), Logged> {
    for listen in listens {
        match listen::bind(&listen.addr, &listen.options, Sharing::AsConfigured) {
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

/// Every address of several generations once.
pub(crate) fn merged(generations: impl IntoIterator<Item = Vec<Listener>>) -> Vec<Listener> {
    let mut all: Vec<Listener> = Vec::new();
    for listener in generations.into_iter().flatten() {
        if all.iter().all(|known| known.key() != listener.key()) {
            all.push(listener);
        }
    }
    all
}

fn taken_over(listen: &Listen, threads: u32, old: &[Listener], console: &Console) -> Listener {
    let before = old.iter().find(|old| old.fits(listen));
    let wanted = if listen.options.reuseport {
        threads as usize
    } else {
        1
    };
    // A socket of a service manager is kept, whatever its protocol: the manager's copy would still listen, and no
    // process would accept.
    let is_replaced = before.is_some_and(|old| {
        old.origin != Origin::Manager && old.listen.options.multipath != listen.options.multipath
    });
    let was_alone = before.is_some_and(|old| !old.listen.options.reuseport);
    if let Some(old) = before
        && (is_replaced || (listen.options.reuseport && was_alone))
    {
        // More sockets can share the address only if the first ones allow it.
        let refused = old
            .sockets
            .iter()
            .map(|socket| listen::allow_sharing(socket));
        for refused in refused.filter_map(Result::err) {
            report_refused(&refused, &listen.addr, console);
        }
    }
    let kept = before.filter(|_| !is_replaced);
    Listener {
        listen: listen.clone(),
        sockets: kept.map_or_else(Vec::new, |old| {
            old.sockets.iter().take(wanted).cloned().collect()
        }),
        wanted,
        sharing: match is_replaced {
            true => Sharing::Replaces,
            false => Sharing::AsConfigured,
        },
        origin: kept.map_or(Origin::Own, Listener::origin),
        beside: false,
    }
}

fn fill_one(listener: &mut Listener, console: &Console) -> Result<Bind, Logged> {
    let Listen { addr, options } = &listener.listen;
    while listener.sockets.len() < listener.wanted {
        let bound = match addr {
            ListenAddr::Inet(inet) if listener.beside => listen::bind_beside(*inet, options),
            _ => listen::bind(addr, options, listener.sharing),
        };
        let bound = match (bound, addr) {
            (Err(error), ListenAddr::Unix(path)) if is_in_use(&error) && stale::remove(path) => {
                let text = format_args!("{addr} is replaced, no server listens there");
                console.notice(text);
                listen::bind(addr, options, listener.sharing)
            }
            (bound, _) => bound,
        };
        match bound {
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
fn report_failed(error: &BindError, addr: &ListenAddr, console: &Console) -> Logged {
    let to = if matches!(error.call, "bind()" | "listen()") {
        "to "
    } else {
        ""
    };
    console.fatal(format_args!("{} {to}{addr}", error.call), &error.error)
}

fn report_refused(refused: &BindError, addr: &ListenAddr, console: &Console) {
    let reason = sys::os_error(&refused.error);
    console.report(
        Level::Alert,
        format_args!("{} {addr} failed ({reason}), ignored", refused.call),
    );
}

/// Number of attempts to bind an address in use.
pub(crate) const BIND_TRIES: u32 = 5;

/// The pause after a try.
pub(crate) const BIND_PAUSE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use server_base::errlog::ErrorLog;
    use server_base::listen::SocketOptions;
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

    fn open(
        listens: &[Listen],
        threads: u32,
        old: &[Listener],
        console: &Console,
    ) -> Result<Vec<Listener>, Logged> {
        let mut listeners = prepare(listens, threads, old, OtherServer::None, console);
        fill_waiting(&mut listeners, console)?;
        beside::begin(&mut listeners, console)?;
        Ok(listeners)
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
    fn another_protocol_replaces_the_sockets_of_an_address() {
        let port = free_port();
        for threads in [1, 3] {
            let plain = listen(port, threads > 1);
            let mut multipath = plain.clone();
            multipath.options.multipath = true;
            let first = open(std::slice::from_ref(&plain), threads, &[], &console()).expect("bind");
            let second = open(&[multipath], threads, &first, &console()).expect("replaced");
            assert_eq!(second[0].sockets.len(), threads as usize);
            assert!(!Rc::ptr_eq(&first[0].sockets[0], &second[0].sockets[0]));
            let third = open(&[plain], threads, &second, &console()).expect("replaced again");
            assert!(!sys::socket::is_multipath(&third[0].sockets[0]));
        }
    }

    #[test]
    fn a_socket_of_a_service_manager_keeps_its_protocol() {
        for (origin, is_kept) in [(Origin::Manager, true), (Origin::Predecessor, false)] {
            let socket = TcpListener::bind("127.0.0.1:0").expect("bind");
            let port = socket.local_addr().expect("address").port();
            let given = Listener::given(listen(port, false), socket.into(), origin);
            let mut multipath = listen(port, false);
            multipath.options.multipath = true;
            let given = [given];
            let taken = open(&[multipath], 1, &given, &console()).expect("taken over");
            let same = Rc::ptr_eq(&given[0].sockets[0], &taken[0].sockets[0]);
            assert_eq!(same, is_kept, "{origin:?}");
        }
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
