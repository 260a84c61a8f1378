//! Watched files, which need no reload: the supervisor looks at them, and renews the generation that serves.
//!
//! Once a second each file's state is compared with the one it was read in; nothing is looked at where nothing is
//! watched. A change counts when two looks have found the file in the same state, so that none is read while it is
//! written. Files that belong together (a certificate and its key) are loaded together: until they match, the
//! generation keeps the old bytes, and the log says so once for each state. The next generation has the text of the
//! configuration that was loaded, whatever is on the disk now; the worker takes it as after HUP, and connections stay.
//!
//! Absent: inotify. The replaced object is mostly a link, or a directory above it; looking at the paths finds that all
//! the same.

use std::ops::ControlFlow::Continue;
use std::path::PathBuf;
use std::time::Instant;

use conf::Stamp;
use server_base::errlog::{Level, Printable};

use super::file_watcher::LOOK_EVERY;
use super::state::{Flow, Phase, Supervisor};
use crate::load;

impl Supervisor {
    /// Looks at the files that are watched if it is time, and takes up what has changed.
    pub(super) fn watch(&mut self, now: Instant) -> Flow {
        let Some(due) = self.watcher.due(&self.current) else {
            self.watcher.due = None;
            return Continue(());
        };
        if due > now {
            self.watcher.due = Some(due);
            return Continue(());
        }
        self.watcher.due = Some(now + LOOK_EVERY);
        if self.phase != Phase::Serving || self.reloading.is_some() {
            return Continue(());
        }
        let mut changes = self.watcher.look(&self.current);
        for fault in self.watcher.sift(&self.current, &mut changes) {
            self.console.report(
                Level::Error,
                format_args!("{fault}, what was read before stays in use"),
            );
        }
        let mut news = Vec::new();
        for (path, (stamp, bytes)) in changes.0 {
            let (Some(stamp), Ok(bytes)) = (stamp, bytes) else {
                continue;
            };
            match self.current.file(&path) {
                Some((known, _)) if known == bytes => self.current.restamp(&path, stamp),
                _ => news.push((path, stamp, bytes)),
            }
        }
        if news.is_empty() {
            return Continue(());
        }
        news.sort_by(|a, b| a.0.cmp(&b.0));
        self.renew(&news)
    }

    /// Serves by the same configuration with the new bytes of files.
    fn renew(&mut self, news: &[(PathBuf, Stamp, Vec<u8>)]) -> Flow {
        let number = self.generations + 1;
        let next = self.current.renewed(number, news);
        let built = match next.bundle(None, &self.options) {
            Ok(bundle) => load::check_bundle(bundle),
            Err(error) => Err(sys::os_error(&error)),
        };
        if let Err(why) = built {
            for (path, stamp, _) in news {
                self.watcher.refused.insert(path.clone(), Some(*stamp));
            }
            self.console.report(
                Level::Error,
                format_args!("{why}, what was read before stays in use"),
            );
            return Continue(());
        }
        self.generations = number;
        for (path, ..) in news {
            let shown = Printable::path(path);
            self.console.report(
                Level::Notice,
                format_args!("\"{shown}\" has changed and is taken up"),
            );
        }
        self.take_up(next)
    }
}
