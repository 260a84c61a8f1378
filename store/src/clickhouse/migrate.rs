//! The schema of a database: made, checked, and never changed if it is newer.
//!
//! Each statement has no effect if its table exists, and the version is written last. So several servers may make a
//! schema at once, and a killed server leaves the rest to the next one. Version 2 adds the tables of experiments.

use std::path::PathBuf;

use super::client::{Client, Failure, UNKNOWN_DATABASE, UNKNOWN_TABLE};
use super::experiments;
use super::sql::{self, SCHEMA_VERSION, TABLES};
use super::text::{identifier, literal};
use crate::error::Error;

/// Makes the schema of a database, or checks that all of it exists.
pub(super) fn prepare(client: &mut Client, database: &str) -> Result<(), Error> {
    match version(client, database)? {
        Some(version) => {
            check(client, database, version)?;
            if version < SCHEMA_VERSION {
                add_experiments(client, database)?;
            }
            Ok(())
        }
        None => make(client, database),
    }
}

/// Checks a database before reading it. Returns the version of its schema.
pub(super) fn check_to_read(client: &mut Client, database: &str) -> Result<u32, Error> {
    match version(client, database)? {
        Some(version) => check(client, database, version).map(|()| version),
        None => Err(Error::Other(format!(
            "the database {database} of ClickHouse has no store: no server has written to it"
        ))),
    }
}

/// Reads the version of the schema, `None` if there is none.
fn version(client: &mut Client, database: &str) -> Result<Option<u32>, Error> {
    let text = format!(
        "SELECT max(version) FROM {} FORMAT TabSeparated",
        sql::table(database, "schema")
    );
    let rows = match client.query(&text) {
        Err(failure) if matches!(failure.code(), Some(UNKNOWN_TABLE | UNKNOWN_DATABASE)) => {
            return Ok(None);
        }
        read => read?,
    };
    match rows.trim().parse() {
        // The largest of no rows.
        Ok(0) => Ok(None),
        Ok(version) => Ok(Some(version)),
        Err(_) => Err(Error::Other(
            "ClickHouse: the version of the schema is no number".to_owned(),
        )),
    }
}

fn check(client: &mut Client, database: &str, version: u32) -> Result<(), Error> {
    if version > SCHEMA_VERSION {
        return Err(Error::Newer {
            path: PathBuf::from(database),
            version: version.into(),
        });
    }
    let text = format!(
        "SELECT name FROM system.tables WHERE database = {} FORMAT TabSeparated",
        literal(database)
    );
    let found = client.query(&text)?;
    let later = experiments::TABLES.into_iter();
    let lost: Vec<&str> = TABLES
        .into_iter()
        .chain(later.filter(|_| version > 1))
        .filter(|table| !found.lines().any(|name| name == *table))
        .collect();
    if lost.is_empty() {
        return Ok(());
    }
    Err(Error::Other(format!(
        "the database {database} of ClickHouse has lost {}",
        lost.join(", ")
    )))
}

fn make(client: &mut Client, database: &str) -> Result<(), Error> {
    if is_missing(client, database)? {
        client.run(&format!(
            "CREATE DATABASE IF NOT EXISTS {}",
            identifier(database)
        ))?;
    }
    for statement in sql::schema(database) {
        client.run(&statement)?;
    }
    add_experiments(client, database)
}

/// Adds the tables of version 2, and writes the version.
fn add_experiments(client: &mut Client, database: &str) -> Result<(), Error> {
    for statement in experiments::schema(database) {
        client.run(&statement)?;
    }
    client.run(&format!(
        "INSERT INTO {} SELECT {SCHEMA_VERSION}, toUInt64(toUnixTimestamp(now()))",
        sql::table(database, "schema")
    ))?;
    Ok(())
}

/// Returns whether a database is missing. Its user need not have the right to make one.
fn is_missing(client: &mut Client, database: &str) -> Result<bool, Failure> {
    let text = format!(
        "SELECT count() FROM system.databases WHERE name = {} FORMAT TabSeparated",
        literal(database)
    );
    Ok(client.query(&text)?.trim() == "0")
}
