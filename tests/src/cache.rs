//! A memcached server with responses written by the test.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::wait::pause;
use std::time::Duration;

/// Action of the server with a connection.
#[derive(Clone, Debug)]
pub enum CacheStep {
    /// Writes these bytes.
    Text(Vec<u8>),
    /// Waits.
    Pause(Duration),
    /// Ends the connection.
    Close,
}

/// A server, for as long as the test runs.
#[derive(Debug)]
pub struct Cache {
    port: u16,
    reads: Arc<Mutex<Vec<Reading>>>,
}

/// Result of one read of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The number of the connection, from 0 on.
    pub connection: usize,
    /// The requested keys.
    pub keys: Vec<String>,
}

type Script = dyn Fn(&Reading) -> Vec<CacheStep> + Send + Sync;

impl Cache {
    /// Starts a server that runs the script for all commands of one read.
    ///
    /// # Panics
    /// If no port is free.
    #[must_use]
    pub fn scripted(script: impl Fn(&Reading) -> Vec<CacheStep> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().map_or(0, |addr| addr.port());
        let reads = Arc::new(Mutex::new(Vec::new()));
        let (script, book): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&reads));
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { return };
                let (script, book) = (Arc::clone(&script), Arc::clone(&book));
                thread::spawn(move || serve(stream, connection, &*script, &book));
            }
        });
        Self { port, reads }
    }

    /// Its address.
    #[must_use]
    pub fn name(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Bytes read so far.
    ///
    /// # Panics
    /// When a connection has panicked.
    #[must_use]
    pub fn reads(&self) -> Vec<Reading> {
        self.reads.lock().expect("no connection panics").clone()
    }

    /// Number of requests for a key.
    #[must_use]
    pub fn request_count(&self, key: &str) -> usize {
        let reads = self.reads();
        let keys = reads.iter().flat_map(|reading| &reading.keys);
        keys.filter(|asked| *asked == key).count()
    }
}

/// The response with a value.
#[must_use]
pub fn value(key: &str, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    let line = format!("VALUE {key} 0 {}\r\n", value.len());
    [line.as_bytes(), value, b"\r\nEND\r\n"].concat()
}

fn serve(mut stream: TcpStream, connection: usize, script: &Script, book: &Mutex<Vec<Reading>>) {
    let _ = stream.set_nodelay(true);
    let (mut came, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        came.extend_from_slice(&buffer[..len]);
        let Some(end) = came.iter().rposition(|byte| *byte == b'\n') else {
            continue;
        };
        let text = String::from_utf8_lossy(&came[..=end]).into_owned();
        came.drain(..=end);
        let keys = text.lines().map(|line| {
            let key = line.strip_prefix("get ").expect("nothing else is asked");
            key.to_owned()
        });
        let reading = Reading {
            connection,
            keys: keys.collect(),
        };
        book.lock()
            .expect("no connection panics")
            .push(reading.clone());
        for said in script(&reading) {
            match said {
                // A client that has left needs no response.
                CacheStep::Text(bytes) => drop(stream.write_all(&bytes)),
                CacheStep::Pause(time) => pause(time),
                CacheStep::Close => drop(stream.shutdown(Shutdown::Both)),
            }
        }
    }
}
