//! Stores by their kind: how each is opened for writing and for reading.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lab::client::Url;
use lab::fetch::{HttpClient, HttpClientSettings};
use lab::web::Source;
use server_base::lab_store::{ClickHouseConf, LabEngine, LabStoreConf, StoreUrl};
use store::{
    ClickHouse, ClickHouseSettings, Report, Retention, Settings, SqliteReader, Store, Transport,
    Writer,
};

use super::credentials::Credentials;

/// Starts the writer of a store.
///
/// # Errors
/// Its thread cannot be started.
pub(super) fn writer(
    conf: &LabStoreConf,
    credentials: &Credentials,
    report: impl Fn(Report) + Send + 'static,
) -> io::Result<Writer> {
    let retention = Retention {
        rows_s: conf.rows_s,
        rollups_s: conf.retention_s,
        max_bytes: match conf.max_bytes {
            0 => u64::MAX,
            bytes => bytes,
        },
    };
    match &conf.engine {
        LabEngine::Sqlite(path) => {
            let settings = Settings {
                retention,
                ..Settings::new(path)
            };
            Writer::start(settings, report)
        }
        LabEngine::ClickHouse(clickhouse) => {
            let ClickHouseConf {
                url,
                user,
                spill,
                spill_bytes,
                batch_ms,
                ..
            } = clickhouse.clone();
            let settings = ClickHouseSettings {
                database: url.database,
                user,
                password: credentials.password.clone(),
                spill,
                spill_bytes,
                batch_pause: Duration::from_millis(batch_ms),
                retention,
            };
            let client = client(clickhouse, credentials, WRITE_TIMEOUT);
            let connect =
                move || -> Box<dyn Transport> { Box::new(HttpClient::new(client.clone())) };
            Writer::start_clickhouse(settings, Box::new(connect), report)
        }
    }
}

/// Returns the store as pages read it.
pub(super) fn source(engine: &LabEngine, credentials: &Credentials) -> Arc<dyn Source> {
    Arc::new(StoreSource {
        engine: engine.clone(),
        credentials: credentials.clone(),
    })
}

/// Opens a store for reading. The connection to ClickHouse begins with the first query.
///
/// # Errors
/// The reason: a file of its settings or the store cannot be read.
pub(crate) fn open_to_read(engine: &LabEngine) -> Result<Box<dyn Store>, String> {
    let credentials = Credentials::read(engine)?;
    source(engine, &credentials).open()
}

/// Checks that a store can be read.
///
/// # Errors
/// The store and the reason.
pub(crate) fn check_readable(conf: &LabStoreConf) -> Result<(), String> {
    let read = open_to_read(&conf.engine).and_then(|store| {
        let extent = store.extent();
        extent.map(drop).map_err(|error| error.to_string())
    });
    read.map_err(|why| format!("the store {} cannot be read: {why}", conf.engine))
}

/// A store that is opened for reading alone.
struct StoreSource {
    engine: LabEngine,
    credentials: Credentials,
}

impl Source for StoreSource {
    fn open(&self) -> Result<Box<dyn Store>, String> {
        match &self.engine {
            LabEngine::Sqlite(path) => {
                let opened = SqliteReader::open(path).map_err(|error| error.to_string())?;
                Ok(Box::new(opened))
            }
            LabEngine::ClickHouse(conf) => {
                let client = client(conf, &self.credentials, READ_TIMEOUT);
                let (database, user) = (conf.url.database.clone(), conf.user.clone());
                let password = self.credentials.password.clone();
                let transport = Box::new(HttpClient::new(client));
                Ok(Box::new(ClickHouse::reader(
                    transport, database, user, password,
                )))
            }
        }
    }

    fn name(&self) -> String {
        self.engine.to_string()
    }
}

/// Returns settings of a client of a ClickHouse server.
fn client(
    conf: &ClickHouseConf,
    credentials: &Credentials,
    timeout: Duration,
) -> HttpClientSettings {
    let StoreUrl {
        is_tls, host, port, ..
    } = &conf.url;
    let scheme = if *is_tls { "https" } else { "http" };
    let url = Url::parse(&format!("{scheme}://{host}:{port}/"));
    let url = url.expect("the host was checked when the configuration was read");
    let mut settings = HttpClientSettings {
        timeout,
        gzip: !conf.url.is_loopback(),
        ..HttpClientSettings::new(&url)
    };
    if let Some(trust) = &credentials.trust {
        settings.trust = trust.clone();
    }
    settings
}

/// Time of an insertion, and of a query of a page.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// See [`WRITE_TIMEOUT`]. It is shorter than the time in which a page must begin.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
