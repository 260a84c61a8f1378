//! A dashboard over generated rows.
#![allow(dead_code, reason = "each user takes its own part")]

pub(crate) mod memory;
pub(crate) mod rows;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use firstbyte_tests::wait::holds_within;
use lab::web::{Live, Site, Source, serve};
use store::{Retention, Sqlite, Store};

/// A file of SQLite as the store of a site.
pub(crate) struct File(pub(crate) PathBuf);

impl Source for File {
    fn open(&self) -> Result<Box<dyn Store>, String> {
        let store = Sqlite::open_to_read(&self.0).map_err(|error| error.to_string())?;
        Ok(Box::new(store))
    }

    fn name(&self) -> String {
        "example".to_owned()
    }
}

/// An experiment in memory as the store of a site.
pub(crate) struct Experiment(pub(crate) memory::Memory);

impl Source for Experiment {
    fn open(&self) -> Result<Box<dyn Store>, String> {
        Ok(Box::new(self.0.clone()))
    }

    fn name(&self) -> String {
        "experiment".to_owned()
    }
}

/// A site on a port of this machine; it ends with this value.
pub(crate) struct Dashboard {
    pub(crate) address: SocketAddr,
    pub(crate) live: Arc<Live>,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Dashboard {
    /// Serves the store of a file.
    pub(crate) fn start(file: &Path) -> Self {
        Self::of(Arc::new(File(file.to_owned())))
    }

    /// Serves a store.
    pub(crate) fn of(source: Arc<dyn Source>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let live = Arc::new(Live::default());
        let site = Site {
            source,
            live: Some(Arc::clone(&live)),
        };
        let (stop, other) = UnixStream::pair().expect("a pair");
        let run = move || serve(listener, site, other.into()).expect("it serves");
        Self {
            address,
            live,
            stop: Some(stop),
            thread: Some(std::thread::spawn(run)),
        }
    }

    /// Waits until the analysis of an experiment is kept.
    pub(crate) fn await_analysis(&self, page: &str) {
        let is_kept = || {
            let mut stream = TcpStream::connect(self.address).expect("it listens");
            let request = format!("GET /{page} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).expect("it reads");
            let mut response = String::new();
            stream.read_to_string(&mut response).expect("it answers");
            !response.contains("data-reload")
        };
        assert!(holds_within(Duration::from_secs(60), is_kept));
    }

    /// URL of a page.
    pub(crate) fn url(&self, page: &str) -> String {
        format!("http://{}/{page}", self.address)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.stop = None;
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()) || std::thread::panicking());
    }
}

/// Time of the system, Unix seconds.
pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("the clock is after 1970").as_secs()
}

/// Makes a store with rows of the last days.
pub(crate) fn filled(file: &Path, count: usize) {
    let now = now_s();
    let mut store = Sqlite::open(file).expect("a new store").store;
    let rows = rows::rows(7, count, now, DAYS_S);
    for part in rows.chunks(5000) {
        store.insert(part).expect("it has room");
    }
    let open = rows::open(8, now, 2 * 86_400);
    store.commit(&[], &open).expect("it has room");
    let (retention, limit) = (Retention::default(), Duration::from_secs(60));
    store.maintain(now, &retention, limit).expect("it has room");
}

/// Time of the rows of [`filled`].
const DAYS_S: u64 = 10 * 86_400;
