//! Sources of findings.

use std::path::PathBuf;
use std::time::Duration;

use lab::doctor::Plan;

use super::Options;
use crate::cli::values::trust;

/// A source of findings.
#[derive(Debug)]
pub(super) enum Source {
    /// Requests to a server.
    Server(Box<Plan>),
    /// A capture of packets.
    Capture(PathBuf),
    /// A HAR archive.
    Archive(PathBuf),
    /// A configuration.
    Configuration(PathBuf),
}

impl Source {
    /// The source selected by the options.
    ///
    /// # Errors
    /// Options contradict each other, or a file cannot be read.
    pub(super) fn of(options: &Options) -> Result<Self, String> {
        let files = (&options.pcap, &options.har, &options.conf);
        let url = match (&options.url, files) {
            (_, (Some(path), ..)) => return Ok(Self::Capture(path.clone())),
            (_, (_, Some(path), _)) => return Ok(Self::Archive(path.clone())),
            (_, (.., Some(path))) => return Ok(Self::Configuration(path.clone())),
            (Some(url), _) => url,
            (None, _) => return Err("neither a URL nor a file is given".to_owned()),
        };
        let mut others = options.more.iter().chain(&options.flushed);
        if let Some(other) = others.find(|other| !other.same_server(url)) {
            return Err(format!("{other} is another server than {url}"));
        }
        if let Some(directory) = options
            .docroot
            .as_ref()
            .filter(|directory| !directory.is_dir())
        {
            return Err(format!("{} is not a directory", directory.display()));
        }
        let mut plan = Plan::new(url.clone());
        plan.more.clone_from(&options.more);
        plan.flushed.clone_from(&options.flushed);
        plan.docroot.clone_from(&options.docroot);
        plan.protocol = options.protocol;
        plan.trust = trust(options.cacert.as_deref(), options.insecure)?;
        plan.cacert.clone_from(&options.cacert);
        plan.timeout = Duration::from_secs_f64(options.timeout_s.min(TIMEOUT_MAX_S));
        plan.requests_max = options.requests_max;
        plan.tries = options.tries;
        Ok(Self::Server(Box::new(plan)))
    }
}

/// A day; no response is waited for longer.
const TIMEOUT_MAX_S: f64 = 86_400.0;
