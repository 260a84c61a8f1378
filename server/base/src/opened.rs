//! Error logs of a configuration, its opened files and sockets, and the error logs built from both.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use crate::errlog::{ErrorLog, FullDisk, Level, MemoryBuffer, Output, Ring, Sink, Topics};
use crate::syslog::{Syslog, SyslogTarget};

/// The target of an error log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// A file, absolute.
    File(PathBuf),
    /// Standard error.
    Stderr,
    /// A syslog server.
    Syslog(SyslogTarget),
    /// A ring in memory.
    Memory(MemoryBuffer),
}

/// One `error_log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorLogConf {
    /// The target.
    pub target: LogTarget,
    /// The least severe level that is written.
    pub level: Level,
    /// Of debugging messages, which.
    pub topics: Topics,
    /// Lines are JSON objects.
    pub json: bool,
}

impl ErrorLogConf {
    /// A log of nginx's form at its default level.
    pub fn plain(target: LogTarget) -> Self {
        Self {
            target,
            level: Level::Error,
            topics: Topics::ALL,
            json: false,
        }
    }
}

/// The open files and sockets of a configuration's logs; a log that is missing here is not written to.
#[derive(Clone, Debug, Default)]
pub struct OpenedLogs {
    /// Files by path.
    pub files: HashMap<PathBuf, Arc<File>>,
    /// Standard error.
    pub stderr: Option<Arc<File>>,
    /// Syslog servers in the order in which the configuration names them.
    pub syslogs: Vec<Arc<Syslog>>,
    /// Rings in memory.
    pub rings: Vec<(MemoryBuffer, Arc<Ring>)>,
}

impl OpenedLogs {
    /// The error log of these directives together.
    pub fn error_log(&self, list: &[ErrorLogConf]) -> ErrorLog {
        let sinks = list.iter().filter_map(|log| {
            Some(Sink {
                output: self.output(&log.target)?,
                level: log.level,
                topics: log.topics,
                json: log.json,
                disk: FullDisk::default(),
            })
        });
        ErrorLog::new(sinks.collect())
    }

    fn output(&self, target: &LogTarget) -> Option<Output> {
        Some(match target {
            LogTarget::File(path) => Output::File(Arc::clone(self.files.get(path)?)),
            LogTarget::Stderr => Output::File(Arc::clone(self.stderr.as_ref()?)),
            LogTarget::Syslog(target) => {
                let found = self.syslogs.iter().find(|s| s.target() == target)?;
                Output::Syslog(Arc::clone(found))
            }
            LogTarget::Memory(buffer) => {
                let (_, ring) = self.rings.iter().find(|(known, _)| known == buffer)?;
                Output::Memory(Arc::clone(ring))
            }
        })
    }
}
