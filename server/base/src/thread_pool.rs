//! Pools of threads that read files, defined by `thread_pool` and used by `aio`.
//!
//! A pool may be named before it is defined: [`ThreadPools::find_or_expect`] and [`ThreadPools::define`] fill in the same
//! [`ThreadPool`], and [`ThreadPools::undefined`] finds the names that nothing defines. The pool `default` is there without a
//! definition. The threads are the driver's.
//!
//! Source: nginx documentation, `thread_pool`, `aio`.

use std::sync::{Arc, OnceLock};

use conf::{ConfError, Directive};

/// A pool, by its name.
#[derive(Debug)]
pub struct ThreadPool {
    name: String,
    limits: OnceLock<Limits>,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    threads: usize,
    max_queue: usize,
}

/// The threads that read files outside of the page cache.
#[derive(Clone, Debug)]
pub enum Aio {
    /// The thread of the connection.
    Off,
    /// The threads of a pool.
    Threads(Arc<ThreadPool>),
}

/// The pools of a configuration.
#[derive(Clone, Debug, Default)]
pub struct ThreadPools(Vec<NamedPool>);

#[derive(Clone, Debug)]
struct NamedPool {
    pool: Arc<ThreadPool>,
    /// The error if no directive defines the pool; `None` for `default`.
    unknown: Option<ConfError>,
}

impl ThreadPool {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Maximum number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.limits().threads
    }

    /// Maximum number of tasks that wait for a thread.
    #[must_use]
    pub fn max_queue(&self) -> usize {
        self.limits().max_queue
    }

    fn limits(&self) -> Limits {
        self.limits.get().copied().unwrap_or(DEFAULTS)
    }
}

impl ThreadPools {
    /// The pool `default`.
    pub fn default_pool(&mut self) -> Arc<ThreadPool> {
        self.entry(DEFAULT, || None)
    }

    /// The pool of this name; one that is never defined is an error at the end.
    pub fn find_or_expect(&mut self, name: &str, d: &Directive) -> Arc<ThreadPool> {
        self.entry(name, || {
            (name != DEFAULT).then(|| ConfError::at(d, format!("unknown thread pool \"{name}\"")))
        })
    }

    /// Applies `thread_pool`.
    ///
    /// # Errors A second definition, an invalid parameter, or missing `threads`.
    pub fn define(&mut self, d: &Directive) -> Result<(), ConfError> {
        let name = d.arg_str(0).to_owned();
        let pool = self.entry(&name, || None);
        if pool.limits.get().is_some() {
            return Err(ConfError::at(
                d,
                format!("duplicate thread pool \"{name}\""),
            ));
        }
        let mut limits = Limits {
            threads: 0,
            ..DEFAULTS
        };
        for word in &d.args[1..] {
            let text = word.as_str();
            let invalid =
                |what: &str| ConfError::word(d, word, format!("invalid {what} value \"{text}\""));
            let number = |value: &str| {
                let number = conf::parse_number(value.as_bytes());
                number.and_then(|number| usize::try_from(number).ok())
            };
            match text.split_once('=') {
                Some(("threads", value)) => {
                    limits.threads = number(value)
                        .filter(|threads| (1..=THREADS_MAX).contains(threads))
                        .ok_or_else(|| invalid("threads"))?;
                }
                Some(("max_queue", value)) => {
                    limits.max_queue = number(value).ok_or_else(|| invalid("max_queue"))?;
                }
                _ => return Err(ConfError::invalid(d, word)),
            }
        }
        if limits.threads == 0 {
            let text = "\"thread_pool\" must have \"threads\" parameter";
            return Err(ConfError::at(d, text));
        }
        let _ = pool.limits.set(limits);
        for named in self.0.iter_mut().filter(|named| named.pool.name == name) {
            named.unknown = None;
        }
        Ok(())
    }

    /// Returns the error of the first pool that is named and not defined.
    pub fn undefined(&mut self) -> Option<ConfError> {
        self.0.iter_mut().find_map(|named| named.unknown.take())
    }

    fn entry(
        &mut self,
        name: &str,
        unknown: impl FnOnce() -> Option<ConfError>,
    ) -> Arc<ThreadPool> {
        if let Some(named) = self.0.iter().find(|named| named.pool.name == name) {
            return Arc::clone(&named.pool);
        }
        let pool = Arc::new(ThreadPool {
            name: name.to_owned(),
            limits: OnceLock::new(),
        });
        self.0.push(NamedPool {
            pool: Arc::clone(&pool),
            unknown: unknown(),
        });
        pool
    }
}

/// The name of the default pool.
const DEFAULT: &str = "default";
/// Its limits if it is not defined; `max_queue` of other pools.
const DEFAULTS: Limits = Limits {
    threads: 32,
    max_queue: 65_536,
};
/// Above the useful concurrency of a disk, and below the limits of a process.
const THREADS_MAX: usize = 1024;
