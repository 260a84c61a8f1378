//! Directives of the main context and of `events`.
//!
//! Source: nginx documentation, "Core functionality".

use std::path::PathBuf;

use conf::{Arity, ConfError, Contexts, Directive, DirectiveDef};
use server_base::affinity::cpu_affinity;
use server_base::logging::{debug_connection, error_log};

use super::ConfigBuilder;

macro_rules! row {
    ($name:literal, $contexts:expr, $arity:ident, $default:literal, $syntax:literal, $doc:literal, $apply:expr) => {
        DirectiveDef {
            name: $name,
            contexts: $contexts,
            arity: Arity::$arity,
            block: false,
            default: $default,
            doc: $doc,
            syntax: $syntax,
            apply: |b, d| {
                b.main.once(d, $name)?;
                let apply: fn(&mut ConfigBuilder, &Directive) -> Result<(), ConfError> = $apply;
                apply(b, d)
            },
        }
    };
}

/// The directives.
pub(super) const ROWS: &[DirectiveDef<ConfigBuilder>] = &[
    DirectiveDef {
        name: "events",
        contexts: Contexts::MAIN,
        arity: Arity::NOARGS,
        block: true,
        default: "",
        doc: "The context of directives on connection processing.",
        syntax: "{ ... }",
        apply: |b, d| {
            if b.seen_events {
                return Err(ConfError::directive(d, "is duplicate"));
            }
            b.seen_events = true;
            conf::walk(b, d.items(), Contexts::EVENTS)
        },
    },
    row!(
        "daemon",
        Contexts::MAIN,
        FLAG,
        "on",
        "on | off",
        "Whether to go to the background.",
        |b, d| {
            b.main.daemon = conf::flag(d)?;
            Ok(())
        }
    ),
    row!(
        "master_process",
        Contexts::MAIN,
        FLAG,
        "on",
        "on | off",
        "Whether the worker is a process of its own.",
        |b, d| {
            b.main.master_process = conf::flag(d)?;
            Ok(())
        }
    ),
    row!(
        "user",
        Contexts::MAIN,
        TAKE12,
        "nobody nobody",
        "user [group]",
        "User and group of the worker process.",
        |b, d| {
            let group = (d.args.len() == 2).then(|| d.arg_str(1).to_owned());
            b.main.user_at = ConfError::at(d, "").to_string();
            b.main.user = Some((d.arg_str(0).to_owned(), group));
            Ok(())
        }
    ),
    row!(
        "pid",
        Contexts::MAIN,
        TAKE1,
        "logs/nginx.pid",
        "file",
        "The file with the supervisor's process ID.",
        |b, d| {
            b.main.pid = path(&b.full_path(d.arg(0)));
            Ok(())
        }
    ),
    row!(
        "worker_processes",
        Contexts::MAIN,
        TAKE1,
        "1",
        "number | auto",
        "Number of worker threads, all in one process.",
        |b, d| {
            b.main.worker_processes = match d.arg(0) {
                b"auto" => std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
                _ => bounded(d, 1, u64::from(MAX_THREADS))? as u32,
            };
            Ok(())
        }
    ),
    row!(
        "worker_rlimit_nofile",
        Contexts::MAIN,
        TAKE1,
        "",
        "number",
        "Largest number of open files for each worker thread, of which the process has all together.",
        |b, d| {
            b.main.worker_rlimit_nofile = Some(conf::number(d)?);
            Ok(())
        }
    ),
    row!(
        "worker_rlimit_core",
        Contexts::MAIN,
        TAKE1,
        "",
        "size",
        "Largest core file of the worker process.",
        |b, d| {
            b.main.worker_rlimit_core = Some(conf::offset(d)?);
            Ok(())
        }
    ),
    row!(
        "worker_priority",
        Contexts::MAIN,
        TAKE1,
        "0",
        "number",
        "Scheduling priority of the worker process.",
        |b, d| {
            b.main.worker_priority = d
                .arg_str(0)
                .parse()
                .map_err(|_| ConfError::word(d, d.word(0), "invalid number"))?;
            Ok(())
        }
    ),
    row!(
        "worker_cpu_affinity",
        Contexts::MAIN,
        ONE_MORE,
        "",
        "cpumask ... | auto [cpumask]",
        "CPUs of each worker thread.",
        |b, d| {
            b.main.cpu_affinity = cpu_affinity(d)?;
            Ok(())
        }
    ),
    row!(
        "worker_shutdown_timeout",
        Contexts::MAIN,
        TAKE1,
        "",
        "time",
        "Time after which a stopping worker, or an old configuration, closes what is still open.",
        |b, d| {
            b.main.shutdown_timeout_ms = Some(conf::time_ms(d)?);
            Ok(())
        }
    ),
    row!(
        "worker_memory_limit",
        Contexts::MAIN,
        TAKE1,
        "off",
        "size | off",
        "Resident memory of the worker process at which new requests are refused; near it idle connections are closed first.",
        |b, d| {
            b.main.memory_limit_bytes = match d.arg(0) {
                b"off" => None,
                _ => Some(conf::offset(d)?).filter(|bytes| *bytes > 0),
            };
            Ok(())
        }
    ),
    row!(
        "working_directory",
        Contexts::MAIN,
        TAKE1,
        "",
        "directory",
        "Working directory of the worker process.",
        |b, d| {
            b.main.working_directory = Some(path(&b.full_path(d.arg(0))));
            Ok(())
        }
    ),
    row!(
        "ssl_object_cache_inheritable",
        Contexts::MAIN,
        FLAG,
        "on",
        "on | off",
        "Whether a reload takes certificates, keys and lists of revoked ones from before whose files have not changed.",
        |b, d| {
            b.main.ssl_object_cache_inheritable = conf::flag(d)?;
            Ok(())
        }
    ),
    row!(
        "reload_connections",
        Contexts::MAIN,
        TAKE1,
        "keep",
        "keep | drain",
        "Whether idle connections outlive a reload (keep) or are closed as nginx does (drain).",
        |b, d| {
            b.main.reload_keep = conf::choice(d, &[("keep", true), ("drain", false)])?;
            Ok(())
        }
    ),
    DirectiveDef {
        name: "env",
        contexts: Contexts::MAIN,
        arity: Arity::TAKE1,
        block: false,
        default: "TZ",
        doc: "An environment variable that the worker keeps or gets.",
        syntax: "variable[=value]",
        apply: |b, d| {
            let text = d.arg_str(0);
            let (name, value) = text
                .split_once('=')
                .map_or((text, None), |(n, v)| (n, Some(v.to_owned())));
            b.main.env.push((name.to_owned(), value));
            Ok(())
        },
    },
    DirectiveDef {
        name: "error_log",
        contexts: Contexts::MAIN,
        arity: Arity::ONE_MORE,
        block: false,
        default: "logs/error.log error",
        doc: "An error log and its level.",
        syntax: "file | stderr | syslog:server=address[,parameter=value] | memory:size [level] [json]",
        apply: |b, d| {
            let log = error_log(b, d)?;
            b.main.error_logs.push(log);
            Ok(())
        },
    },
    DirectiveDef {
        name: "thread_pool",
        contexts: Contexts::MAIN,
        arity: Arity::TAKE23,
        block: false,
        default: "default threads=32 max_queue=65536",
        doc: "A pool of threads that read files which are not in the page cache.",
        syntax: "name threads=number [max_queue=number]",
        apply: |b, d| b.main.thread_pools.define(d),
    },
    DirectiveDef {
        name: "load_module",
        contexts: Contexts::MAIN,
        arity: Arity::TAKE1,
        block: false,
        default: "",
        doc: "Modules are built in: a notice for one that is, an error for any other.",
        syntax: "file",
        apply: load_module,
    },
    row!(
        "worker_connections",
        Contexts::EVENTS,
        TAKE1,
        "512",
        "number",
        "Most connections of one worker thread.",
        |b, d| {
            let number = conf::parse_number(d.arg(0)).filter(|n| *n <= u64::from(MAX_CONNECTIONS));
            let bad =
                || ConfError::word(d, d.word(0), format!("invalid number \"{}\"", d.arg_str(0)));
            b.main.worker_connections = number.ok_or_else(bad)? as u32;
            Ok(())
        }
    ),
    DirectiveDef {
        name: "debug_connection",
        contexts: Contexts::EVENTS,
        arity: Arity::TAKE1,
        block: false,
        default: "",
        doc: "Clients whose connections are logged at level debug.",
        syntax: "address | CIDR | unix:",
        apply: |b, d| {
            let networks = debug_connection(b, d)?;
            b.main.debug_connections.extend(networks);
            Ok(())
        },
    },
    row!(
        "multi_accept",
        Contexts::EVENTS,
        FLAG,
        "off",
        "on | off",
        "Whether to accept all waiting connections at a time.",
        |b, d| {
            b.main.multi_accept = conf::flag(d)?;
            Ok(())
        }
    ),
    row!(
        "use",
        Contexts::EVENTS,
        TAKE1,
        "",
        "method",
        "The connection processing method: epoll.",
        |_, d| {
            if d.arg(0) == b"epoll" {
                return Ok(());
            }
            Err(ConfError::word(
                d,
                d.word(0),
                format!("invalid event type \"{}\"", d.arg_str(0)),
            ))
        }
    ),
];

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

fn bounded(d: &Directive, low: u64, high: u64) -> Result<u64, ConfError> {
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
