//! The configuration of a run, with a directory of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use server_base::opened::OpenedLogs;
use server_http::http::Http;
use sim::Random;

use super::load::{load_text, log};
use super::locations::LOCATIONS;

/// `proxy_read_timeout`, milliseconds.
pub(crate) const READ_MS: u64 = 5000;

/// The directory of a run. It is removed at the end.
pub(crate) struct Site {
    directory: PathBuf,
    text: String,
}

impl Site {
    pub(crate) fn new(random: &mut Random) -> Self {
        static SITES: AtomicU32 = AtomicU32::new(0);
        let number = SITES.fetch_add(1, Ordering::Relaxed);
        let name = format!("firstbyte-cache-{}-{number}", std::process::id());
        let directory = base().join(name);
        for folder in ["cache", "temp"] {
            std::fs::create_dir_all(directory.join(folder)).expect("the directory is writable");
        }
        let path = directory.display().to_string();
        Self {
            text: config(&path, random),
            directory,
        }
    }

    /// Loads the configuration. The cache is that of earlier calls.
    pub(crate) fn http(&self) -> Arc<Http> {
        http(&self.text)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Returns the directory for the directories of runs: one in memory, if there is one.
fn base() -> &'static Path {
    static BASE: OnceLock<PathBuf> = OnceLock::new();
    BASE.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        if memory.is_dir() {
            memory
        } else {
            std::env::temp_dir()
        }
    })
}

fn config(directory: &str, random: &mut Random) -> String {
    let locations: String = LOCATIONS
        .iter()
        .map(|location| {
            format!(
                "location /{}/ {{ proxy_pass http://one/; proxy_cache zone; {} }}\n",
                location.name, location.conf
            )
        })
        .collect();
    let levels = random.pick(&["", "levels=1", "levels=1:2"]);
    let memory = random.pick(&["", "memory=64k", "memory=1m"]);
    let size = random.pick(&["", "", "max_size=8k", "max_size=40k"]);
    let inactive = random.pick(&["1s", "2s", "10m", "10m", "10m"]);
    let temp = random.pick(&["on", "off"]);
    let buffers = random.pick(&[
        "",
        "proxy_buffer_size 2k; proxy_buffers 8 1k; proxy_busy_buffers_size 2k;",
    ]);
    format!(
        "events {{}}
        http {{
            access_log off;
            client_header_timeout 10s; client_body_timeout 8s; send_timeout 8s; keepalive_timeout 15s;
            client_body_temp_path {directory}/temp; proxy_temp_path {directory}/temp;
            proxy_cache_path {directory}/cache {levels} keys_zone=zone:64k {memory} {size} inactive={inactive}
                use_temp_path={temp};
            upstream one {{ server 127.0.0.1:81 max_fails=0; keepalive 4; }}
            map $uri $name {{ '~^/[a-z]+/(?<rest>.*)$' $rest; }}
            map $request_method $purges {{ PURGE 1; default 0; }}
            proxy_connect_timeout 3s; proxy_send_timeout 4s; proxy_read_timeout {READ_MS}ms;
            proxy_cache_key $name;
            proxy_cache_purge $purges;
            proxy_http_version 1.1;
            proxy_set_header Connection '';
            {buffers}
            server {{
                listen 127.0.0.1:8001;
                server_name a.test;
                {locations}
                location /api/ {{ api write=on; }}
            }}
        }}"
    )
}

fn http(text: &str) -> Arc<Http> {
    let http = load_text(text, server_modules::MODULES);
    http.attach_logs(OpenedLogs::default(), &log());
    http
}
