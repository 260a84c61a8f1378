//! Errors of a store.

use std::fmt;
use std::path::PathBuf;

/// Reason why a store cannot be opened, read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The file belongs to another program.
    Foreign(PathBuf),
    /// The file has a newer schema than this program.
    Newer {
        /// The file.
        path: PathBuf,
        /// Version of its schema.
        version: i64,
    },
    /// The file is damaged; the text is SQLite's description.
    Damaged(String),
    /// Another process holds the lock of the file for too long.
    Busy,
    /// The disk is full.
    Full,
    /// The file or its file system is read-only.
    ReadOnly,
    /// Any other error of the system or of SQLite.
    Other(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(path) => write!(out, "{} is no store of firstbyte", path.display()),
            Self::Newer { path, version } => write!(
                out,
                "{} is a store of a newer firstbyte: its schema has version {version}",
                path.display()
            ),
            Self::Damaged(why) => write!(out, "the store is damaged: {why}"),
            Self::Busy => out.write_str("another process holds the lock of the store"),
            Self::Full => out.write_str("the disk is full"),
            Self::ReadOnly => out.write_str("the store is read-only"),
            Self::Other(why) => out.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as Sqlite;
        use rusqlite::ErrorCode as Code;
        if let Sqlite::InvalidColumnType(..)
        | Sqlite::FromSqlConversionFailure(..)
        | Sqlite::IntegralValueOutOfRange(..)
        | Sqlite::Utf8Error(..)
        | Sqlite::QueryReturnedNoRows = error
        {
            // Each query that must find a row names it, and tables have types.
            return Self::Damaged(error.to_string());
        }
        match error.sqlite_error_code() {
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Damaged(error.to_string()),
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Busy,
            Some(Code::DiskFull) => Self::Full,
            Some(Code::ReadOnly) => Self::ReadOnly,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull => Self::Full,
            std::io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Other(error.to_string()),
        }
    }
}
