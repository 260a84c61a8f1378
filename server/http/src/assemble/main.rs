//! Directives of the main context and of `events`.
//!
//! Source: nginx documentation, "Core functionality".

use std::path::PathBuf;

use conf::{Apply, ConfError, Contexts, Directive};
use server_base::affinity::cpu_affinity;
use server_base::logging::{debug_connection, error_log};

use super::ConfigBuilder;

/// A directive that is written once.
macro_rules! once {
    ($apply:expr) => {
        |b, d| {
            b.main.once(d)?;
            let apply: Apply<ConfigBuilder> = $apply;
            apply(b, d)
        }
    };
}

conf::directives! {
    /// The directives.
    pub(super) const ROWS: ConfigBuilder;

    /// The context of directives on connection processing.
    block "events": Contexts::MAIN, NOARGS, "", "{ ... }" => |b, d| {
        conf::once(d, b.seen_events)?;
        b.seen_events = true;
        conf::walk(b, d.items(), Contexts::EVENTS)
    };

    /// Whether to go to the background.
    directive "daemon": Contexts::MAIN, FLAG, "on", "on | off" => once!(|b, d| {
        b.main.daemon = conf::flag(d)?;
        Ok(())
    });

    /// Whether the worker is a process of its own.
    directive "master_process": Contexts::MAIN, FLAG, "on", "on | off" => once!(|b, d| {
        b.main.master_process = conf::flag(d)?;
        Ok(())
    });

    /// User and group of the worker process.
    directive "user": Contexts::MAIN, TAKE12, "nobody nobody", "user [group]" => once!(|b, d| {
        let group = (d.args.len() == 2).then(|| d.arg_str(1).to_owned());
        b.main.user_at = ConfError::at(d, "").to_string();
        b.main.worker.user = Some((d.arg_str(0).to_owned(), group));
        Ok(())
    });

    /// The file with the supervisor's process ID.
    directive "pid": Contexts::MAIN, TAKE1, "logs/nginx.pid", "file" => once!(|b, d| {
        b.main.pid = path(&b.full_path(d.arg(0)));
        Ok(())
    });

    /// Number of worker threads, all in one process.
    directive "worker_processes": Contexts::MAIN, TAKE1, "1", "number | auto" => once!(|b, d| {
        b.main.worker_processes = match d.arg(0) {
            b"auto" => std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            _ => parse_bounded(d, 1, u64::from(MAX_THREADS))? as u32,
        };
        Ok(())
    });

    /// Largest number of open files for each worker thread, of which the process has all together.
    directive "worker_rlimit_nofile": Contexts::MAIN, TAKE1, "", "number" => once!(|b, d| {
        b.main.worker.rlimit_nofile = Some(conf::number(d)?);
        Ok(())
    });

    /// Largest core file of the worker process.
    directive "worker_rlimit_core": Contexts::MAIN, TAKE1, "", "size" => once!(|b, d| {
        b.main.worker.rlimit_core = Some(conf::offset(d)?);
        Ok(())
    });

    /// Scheduling priority of the worker process.
    directive "worker_priority": Contexts::MAIN, TAKE1, "0", "number" => once!(|b, d| {
        b.main.worker.priority = d
            .arg_str(0)
            .parse()
            .map_err(|_| ConfError::directive(d, "invalid number"))?;
        Ok(())
    });

    /// CPUs of each worker thread.
    directive "worker_cpu_affinity": Contexts::MAIN, ONE_MORE, "", "cpumask ... | auto [cpumask]"
        => once!(|b, d| {
            b.main.cpu_affinity = cpu_affinity(d)?;
            Ok(())
        });

    /// Time after which a stopping worker, or an old configuration, closes open connections.
    directive "worker_shutdown_timeout": Contexts::MAIN, TAKE1, "", "time" => once!(|b, d| {
        b.main.shutdown_timeout_ms = Some(conf::time_ms(d)?);
        Ok(())
    });

    /// Resident memory of the worker process at which new requests are refused; near it idle connections are closed
    /// first.
    directive "worker_memory_limit": Contexts::MAIN, TAKE1, "off", "size | off" => once!(|b, d| {
        b.main.memory_limit_bytes = match d.arg(0) {
            b"off" => None,
            _ => Some(conf::offset(d)?).filter(|bytes| *bytes > 0),
        };
        Ok(())
    });

    /// Working directory of the worker process.
    directive "working_directory": Contexts::MAIN, TAKE1, "", "directory" => once!(|b, d| {
        b.main.worker.working_directory = Some(path(&b.full_path(d.arg(0))));
        Ok(())
    });

    /// Whether a reload keeps certificates, keys and lists of revoked ones if their files have not changed.
    directive "ssl_object_cache_inheritable": Contexts::MAIN, FLAG, "on", "on | off" => once!(|b, d| {
        b.main.reload.keeps_ssl_objects = conf::flag(d)?;
        Ok(())
    });

    /// Whether idle connections outlive a reload (keep) or are closed as nginx does (drain).
    directive "reload_connections": Contexts::MAIN, TAKE1, "keep", "keep | drain" => once!(|b, d| {
        b.main.reload.keeps_connections = conf::choice(d, &[("keep", true), ("drain", false)])?;
        Ok(())
    });

    /// An environment variable that the worker keeps or gets.
    directive "env": Contexts::MAIN, TAKE1, "TZ", "variable[=value]" => |b, d| {
        let text = d.arg_str(0);
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(n, v)| (n, Some(v.to_owned())));
        b.main.worker.env.push((name.to_owned(), value));
        Ok(())
    };

    /// An error log and its level.
    directive "error_log": Contexts::MAIN, ONE_MORE, "logs/error.log error",
        "file | stderr | syslog:server=address[,parameter=value] | memory:size [level] [json]" => |b, d| {
            let log = error_log(b, d)?;
            b.main.error_logs.push(log);
            Ok(())
        };

    /// A pool of threads that read files outside the page cache.
    directive "thread_pool": Contexts::MAIN, TAKE23, "default threads=32 max_queue=65536",
        "name threads=number [max_queue=number]" => |b, d| b.main.thread_pools.define(d);

    /// Modules are built in: a notice for one that is, an error for any other.
    directive "load_module": Contexts::MAIN, TAKE1, "", "file" => load_module;

    /// Maximum number of connections of one worker thread.
    directive "worker_connections": Contexts::EVENTS, TAKE1, "512", "number" => once!(|b, d| {
        let number = conf::parse_number(d.arg(0)).filter(|n| *n <= u64::from(MAX_CONNECTIONS));
        let bad =
            || ConfError::word(d, d.word(0), format!("invalid number \"{}\"", d.arg_str(0)));
        b.main.events.connections = number.ok_or_else(bad)? as u32;
        Ok(())
    });

    /// Clients with connections logged at level debug.
    directive "debug_connection": Contexts::EVENTS, TAKE1, "", "address | CIDR | unix:" => |b, d| {
        let networks = debug_connection(b, d)?;
        b.main.events.debug_connections.extend(networks);
        Ok(())
    };

    /// Whether to accept all waiting connections at a time.
    directive "multi_accept": Contexts::EVENTS, FLAG, "off", "on | off" => once!(|b, d| {
        b.main.events.multi_accept = conf::flag(d)?;
        Ok(())
    });

    /// Whether a thread with many requests in progress with servers sleeps up to 50 us before it takes the next events.
    directive "event_coalescing": Contexts::EVENTS, FLAG, "on", "on | off" => once!(|b, d| {
        b.main.events.coalescing = conf::flag(d)?;
        Ok(())
    });

    /// The connection processing method: epoll.
    directive "use": Contexts::EVENTS, TAKE1, "", "method" => once!(|_, d| {
        if d.arg(0) == b"epoll" {
            return Ok(());
        }
        Err(ConfError::word(
            d,
            d.word(0),
            format!("invalid event type \"{}\"", d.arg_str(0)),
        ))
    });
}

/// A dynamic module of nginx: fine if it is built in here.
fn load_module(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let file = d.arg_str(0).rsplit('/').next().unwrap_or_default();
    let name = file
        .strip_prefix("ngx_http_")
        .and_then(|n| n.strip_suffix("_module.so"))
        .unwrap_or(file);
    let mut modules = b.modules.iter();
    if modules.any(|m| m.name == name || m.replaces.contains(&name)) {
        b.notice(ConfError::word(
            d,
            d.word(0),
            format!("module \"{name}\" is built in, nothing to load"),
        ));
        return Ok(());
    }
    Err(ConfError::word(
        d,
        d.word(0),
        format!("module \"{}\" is not built in", d.arg_str(0)),
    ))
}

fn parse_bounded(d: &Directive, low: u64, high: u64) -> Result<u64, ConfError> {
    let n = conf::parse_number(d.arg(0))
        .filter(|n| *n >= low)
        .ok_or_else(|| server_base::from_args::invalid(d))?;
    conf::between(d, n, low, high)
}

pub(super) fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Maximum number of worker threads.
const MAX_THREADS: u32 = 1024;
/// Maximum number of connections of a thread.
const MAX_CONNECTIONS: u32 = 4_000_000;
