//! The setup of one worker thread on a real socket, for tests of the loop.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use driver::io::files::Limits;
use driver::worker::thread_commands::Setup;
use server_base::errlog::ErrorLog;
use server_base::opened::OpenedLogs;
use server_http::module::Module;
use server_http::{LoadOptions, load};

/// Returns the setup of a thread with this listener, `inner` inside its `server` block, and one module besides the
/// core.
pub(crate) fn setup(
    listener: TcpListener,
    inner: &str,
    module: &'static [&'static Module],
    worker_connections: usize,
) -> Setup {
    let options = LoadOptions {
        conf_path: PathBuf::from("/etc/thread.conf"),
        prefix: PathBuf::from("/etc"),
        globals: None,
        error_log: None,
        access_log: PathBuf::from("/dev/null"),
    };
    let address = listener.local_addr().expect("it is bound").to_string();
    let text = format!("events {{}} http {{ server {{ listen {address}; {inner} }} }}");
    let source = conf::Memory::default().with_file("/etc/thread.conf", text);
    let Ok(cycle) = load(source, &options, module) else {
        panic!("the configuration is refused");
    };
    let http = cycle.http.expect("the configuration has an http block");
    let log = ErrorLog::new(Vec::new());
    http.attach_logs(OpenedLogs::default(), &log);
    listener
        .set_nonblocking(true)
        .expect("a socket can be changed");
    Setup {
        http,
        number: 1,
        listeners: vec![Some(Arc::new(listener.into()))],
        log,
        worker_connections,
        descriptor_ceiling: i32::MAX,
        file_limits: Limits::default(),
        debug_connections: Arc::new([]),
        multi_accept: true,
        coalesces_events: true,
        keep_connections: true,
        probes: false,
        shutdown_timeout_ms: None,
    }
}
