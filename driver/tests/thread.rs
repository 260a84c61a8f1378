//! One worker thread on real sockets. Another thread wakes it while it sleeps in its poller.

#[path = "support/setup.rs"]
mod setup;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use driver::worker::thread::Thread;
use driver::worker::thread_commands::{Command, Counters};
use server_base::waker::RemoteWaker;
use server_http::exchange::{Ctx, Env, Exchange, State, Wait};
use server_http::module::{Content, Handler, Module};
use server_http::{reply, variables};
use sys::poll::Waker;

use setup::setup;

const ASK: Module = Module {
    name: "ask",
    handlers: &[Handler::Content(ask)],
    ..Module::EMPTY
};

/// Waiting exchanges send their wakers here.
static ASKED: Mutex<Option<Sender<RemoteWaker>>> = Mutex::new(None);

/// Marks an exchange that has waited.
struct Waited;

/// Answers when it is resumed. Only a wake ends its wait.
fn ask(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    if x.extensions.take::<Waited>().is_none() {
        x.extensions.push(Waited);
        let waker = x.waker(cx).remote();
        let asked = ASKED.lock().expect("nobody panics with it");
        let asked = asked.as_ref().expect("the test has begun");
        asked.send(waker).expect("the test waits");
        x.progress.state = State::Waiting(Wait::woken());
        return Content::Wait;
    }
    reply::text(x, cx, 200, b"answer".to_vec(), Some(b"text/plain"));
    Content::Sent
}

fn answered(client: &mut TcpStream) -> bool {
    let mut received = Vec::new();
    let mut piece = [0; 1024];
    while !received.ends_with(b"answer") {
        match client.read(&mut piece) {
            Ok(n) if n > 0 => received.extend_from_slice(&piece[..n]),
            _ => return false,
        }
    }
    true
}

/// The exchanges have no timeout, so an answer proves a wake. Some wakes come before the thread sleeps.
#[test]
fn another_thread_wakes_a_thread_that_sleeps() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let (asked, wakers): (_, Receiver<RemoteWaker>) = channel();
    *ASKED.lock().expect("nobody panics with it") = Some(asked);
    let setup = setup(listener, "http2 on;", &[&ASK], 16);
    let (commands, inbox) = channel();
    let waker = Arc::new(Waker::new().expect("a descriptor is free"));
    let theirs = Arc::clone(&waker);
    let thread = std::thread::spawn(move || {
        let thread = Thread::new(
            setup,
            theirs,
            inbox,
            Arc::<Counters>::default(),
            Env::default(),
        );
        thread.expect("a poller can be made").run();
    });
    let mut clients: Vec<TcpStream> = (0..4)
        .map(|_| TcpStream::connect(address).expect("it listens"))
        .collect();
    for round in 0..ROUNDS {
        for client in &mut clients {
            client
                .set_read_timeout(Some(Duration::from_secs(20)))
                .expect("it is a time");
            client
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .expect("it is open");
        }
        let waiting: Vec<RemoteWaker> = wakers.iter().take(clients.len()).collect();
        for remote in &waiting {
            remote.wake();
        }
        // The exchange is gone, or was woken already.
        if round % 2 == 0 {
            waiting.iter().for_each(RemoteWaker::wake);
        }
        for client in &mut clients {
            assert!(answered(client), "round {round}");
        }
    }
    commands.send(Command::Terminate).expect("the thread runs");
    waker.wake();
    thread.join().expect("it does not panic");
}

const ROUNDS: usize = 200;

/// The sender of commands to the thread that makes checks, with its waker.
static CHECKING: Mutex<Option<(Sender<Command>, Arc<Waker>)>> = Mutex::new(None);
/// Number of checks that have begun.
static BEGUN: AtomicUsize = AtomicUsize::new(0);

const STOPPING: Module = Module {
    name: "stopping",
    variables: variables! {
        "stop": "ends the thread" => |_, _, _, _| {
            BEGUN.fetch_add(1, Ordering::SeqCst);
            let checking = CHECKING.lock().expect("no holder panics");
            let (commands, waker) = checking.as_ref().expect("the test has begun");
            commands.send(Command::Quit(None)).expect("the thread runs");
            waker.wake();
            true
        };
    },
    ..Module::EMPTY
};

/// The first turn begins [`AT_ONCE`] checks. While the others are queued, the first request ends the thread.
#[test]
fn queued_checks_do_not_begin_after_the_end_of_their_configuration() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    // The kernel accepts for it, so checks wait for an answer.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let peer = format!("server {};", silent.local_addr().expect("it is bound"));
    let conf = format!(
        "location / {{ proxy_pass http://app; proxy_set_header X-Stop $stop; health_check; }} }}
         upstream app {{ zone app 64k; {}",
        peer.repeat(AT_ONCE + 8)
    );
    let all: Vec<&'static Module> = [&STOPPING as &'static Module]
        .into_iter()
        .chain(server_modules::MODULES.iter().copied())
        .collect();
    let mut setup = setup(listener, &conf, all.leak(), 1024);
    setup.probes = true;
    let (commands, inbox) = channel();
    let waker = Arc::new(Waker::new().expect("a descriptor is free"));
    *CHECKING.lock().expect("no holder panics") = Some((commands, Arc::clone(&waker)));
    let thread = Thread::new(
        setup,
        waker,
        inbox,
        Arc::<Counters>::default(),
        Env::default(),
    );
    thread.expect("a poller can be made").run();
    assert_eq!(BEGUN.load(Ordering::SeqCst), AT_ONCE);
}

/// Number of checks that one turn begins.
const AT_ONCE: usize = 32;
