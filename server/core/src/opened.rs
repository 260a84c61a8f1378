//! The opened logs of one configuration, and the error logs made of them.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use crate::build::{ErrorLogConf, LogTarget};
use crate::errlog::{ErrorLog, MemoryBuffer, Output, Ring, Sink};
use crate::syslog::Syslog;

/// What was opened for the logs of a configuration; what is missing is not written to.
#[derive(Clone, Debug, Default)]
pub struct OpenedLogs {
    /// Files by path.
    pub files: HashMap<PathBuf, Arc<File>>,
    /// Standard error.
    pub stderr: Option<Arc<File>>,
    /// Syslog servers in the order of [`Cycle::syslogs`](crate::Cycle).
    pub syslogs: Vec<Arc<Syslog>>,
    /// Rings in memory.
    pub rings: Vec<(MemoryBuffer, Arc<Ring>)>,
}

impl OpenedLogs {
    /// The error log that these directives name together.
    pub fn error_log(&self, list: &[ErrorLogConf]) -> ErrorLog {
        let sinks = list.iter().filter_map(|log| {
            Some(Sink {
                output: self.output(&log.target)?,
                level: log.level,
                topics: log.topics,
                json: log.json,
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
