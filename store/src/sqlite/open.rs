//! Opening: check of the owner and the integrity of the file, and a new one in place of a damaged one.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::aside::with;
use crate::error::Error;
use crate::sql;

/// Mode of new files: the server writes, its group reads.
const MODE: u32 = 0o640;
/// Time that an opening or a transaction waits for the lock of another process.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Time of the integrity check at opening. It suffices for about 450 MB; a larger file is checked in part.
const CHECK_TIME_MAX: Duration = Duration::from_secs(2);
/// First bytes of a file of SQLite, <https://www.sqlite.org/fileformat.html>, section 1.3.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Length of the header of a file, and place of `application_id` in it.
const HEADER_BYTES: u64 = 100;
const APPLICATION_ID_AT: usize = 68;

/// Identity of a file: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

impl FileId {
    fn of(file: &Metadata) -> Self {
        Self(file.dev(), file.ino())
    }

    /// Returns whether a path leads to this file.
    pub(super) fn is_at(self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| Self::of(&found) == self)
    }
}

/// Opens a file for writing, and makes it if there is none.
pub(super) fn to_write(path: &Path) -> Result<(Connection, FileId), Error> {
    make(path)?;
    let file = regular(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(LOCK_WAIT)?;
    // SQLite also opens files that it may not write.
    if db.is_readonly("main")? {
        return Err(Error::ReadOnly);
    }
    match version(&db, path).map_err(|error| judged(path, error))? {
        None => begin(&db)?,
        Some(version) => {
            check(&db, version)?;
            migrate(&db)?;
        }
    }
    db.execute_batch(sql::WRITER)?;
    Ok((db, file))
}

/// Makes the tables of a new file.
fn begin(db: &Connection) -> Result<(), Error> {
    db.execute_batch(sql::NEW_FILE)?;
    db.execute_batch(&format!(
        "BEGIN IMMEDIATE; {} PRAGMA application_id = {}; PRAGMA user_version = {}; COMMIT;",
        sql::schema(),
        sql::APPLICATION_ID,
        sql::SCHEMA_VERSION
    ))?;
    // From now on the header names the program.
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Migrates a file of an earlier version to this schema, in one transaction that changes no row.
fn migrate(db: &Connection) -> Result<(), Error> {
    let version = || db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    if version()? == sql::SCHEMA_VERSION {
        return Ok(());
    }
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    // Another process may have been quicker.
    let version = version()?;
    if version != sql::SCHEMA_VERSION {
        transaction.execute_batch(&sql::migration(version))?;
    }
    Ok(transaction.commit()?)
}

/// Opens a file for reading.
pub(super) fn to_read(path: &Path) -> Result<(Connection, FileId), Error> {
    let file = regular(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    match reads(&db, path) {
        Err(Error::ReadOnly) if !has_log(path) => {}
        done => return done.map(|()| (db, file)),
    }
    // Without a log no process writes the file. This reader may not create a log, which SQLite would otherwise
    // require.
    let db = Connection::open_with_flags(immutable(path), flags | OpenFlags::SQLITE_OPEN_URI)?;
    reads(&db, path).map(|()| (db, file))
}

/// Prepares a connection that reads, and checks that the file belongs to this program.
fn reads(db: &Connection, path: &Path) -> Result<(), Error> {
    db.busy_timeout(LOCK_WAIT)?;
    db.execute_batch(sql::READER)?;
    match version(db, path).map_err(|error| judged(path, error))? {
        Some(_) => Ok(()),
        None => Err(Error::Foreign(path.to_owned())),
    }
}

fn has_log(path: &Path) -> bool {
    fs::metadata(with(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// URI of a file without writers, <https://www.sqlite.org/uri.html>.
fn immutable(path: &Path) -> PathBuf {
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'?' | b'#' | b'%' => uri.extend(format!("%{byte:02x}").bytes()),
            _ => uri.push(*byte),
        }
    }
    uri.extend(b"?immutable=1");
    OsString::from_vec(uri).into()
}

/// Locks the directory of a path until the result is dropped. Some network file systems cannot.
pub(super) fn lock_directory(path: &Path) -> Result<Option<File>, Error> {
    let parent = path.parent().filter(|name| !name.as_os_str().is_empty());
    let Ok(directory) = File::open(parent.unwrap_or(Path::new("."))) else {
        return Ok(None);
    };
    let until = Instant::now() + LOCK_WAIT;
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(Some(directory)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return Err(Error::Busy),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
        }
    }
}

/// Makes an empty file if there is none.
fn make(path: &Path) -> Result<(), Error> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path);
    match made {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(named(path, error)),
        _ => Ok(()),
    }
}

/// An error of the system, with the path.
fn named(path: &Path, error: std::io::Error) -> Error {
    match Error::from(error) {
        Error::Other(why) => Error::Other(format!("{}: {why}", path.display())),
        known => known,
    }
}

/// Returns the identity of the file at a path, which must be a regular file.
fn regular(path: &Path) -> Result<FileId, Error> {
    let found = fs::metadata(path).map_err(|error| named(path, error))?;
    if !found.is_file() {
        let why = format!("{} is no regular file", path.display());
        return Err(Error::Other(why));
    }
    Ok(FileId::of(&found))
}

/// Checks the header of a file that SQLite reports as damaged: it may be another program's.
///
/// Whole files are not read here. Closing a descriptor would end the locks that SQLite has on the file in this process,
/// <https://www.sqlite.org/howtocorrupt.html>, section 2.2.
fn judged(path: &Path, error: Error) -> Error {
    let Error::Damaged(_) = error else {
        return error;
    };
    let mut header = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut header));
    if let Err(error) = read {
        return named(path, error);
    }
    let id = header.get(APPLICATION_ID_AT..APPLICATION_ID_AT + 4);
    let is_cut = id.is_none() && header.starts_with(MAGIC);
    if is_cut || id.is_some_and(|id| id == (sql::APPLICATION_ID as u32).to_be_bytes()) {
        return error;
    }
    Error::Foreign(path.to_owned())
}

/// Returns the version of a store's schema; `None` for a file without tables.
fn version(db: &Connection, path: &Path) -> Result<Option<i64>, Error> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = number("application_id")?;
    let version = number("user_version")?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == 0 && version == 0 && tables == 0 {
        return Ok(None);
    }
    if application != sql::APPLICATION_ID {
        return Err(Error::Foreign(path.to_owned()));
    }
    if version > sql::SCHEMA_VERSION {
        return Err(Error::Newer {
            path: path.to_owned(),
            version,
        });
    }
    if version < 1 {
        return Err(Error::Damaged(format!("its schema has version {version}")));
    }
    Ok(Some(version))
}

/// Checks the tables, the small and the valuable ones first, until [`CHECK_TIME_MAX`] is over.
fn check(db: &Connection, version: i64) -> Result<(), Error> {
    let (done, over) = mpsc::channel::<()>();
    let interrupt = db.get_interrupt_handle();
    let timer = std::thread::spawn(move || {
        if over.recv_timeout(CHECK_TIME_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
            interrupt.interrupt();
        }
    });
    let found = check_tables(db, version);
    drop(done);
    // It ends at once.
    let _ = timer.join();
    found
}

fn check_tables(db: &Connection, version: i64) -> Result<(), Error> {
    let stored = db
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<Vec<String>, _>>()?;
    // Views of an earlier version are replaced.
    let schema = match version {
        sql::SCHEMA_VERSION => sql::schema(),
        earlier => sql::tables(earlier),
    };
    // Indexes and views of others do no harm.
    for text in sql::statements(&schema) {
        if !stored.iter().any(|stored| stored == text) {
            return Err(Error::Damaged("its schema is damaged".to_owned()));
        }
    }
    let begin = Instant::now();
    // Each with the version that added it.
    let tables = [
        ("state", 1),
        ("name", 1),
        ("experiment", 3),
        ("experiment_arm", 3),
        ("rollup", 1),
        ("open", 2),
        ("arm_minute", 3),
        ("visit", 3),
        ("connection", 1),
    ];
    for (table, since) in tables {
        if version < since {
            continue;
        }
        let check = format!("PRAGMA quick_check('{table}')");
        match db.query_row(&check, [], |row| row.get::<_, String>(0)) {
            Ok(found) if found == "ok" => {}
            Ok(found) => return Err(Error::Damaged(found)),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        if begin.elapsed() >= CHECK_TIME_MAX {
            break;
        }
    }
    Ok(())
}
