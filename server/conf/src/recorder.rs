//! A source whose answers are recorded, so that they can be given again; and objects that outlive a load.
//!
//! Absent: reading anything a second time on its own.
//!
//! Source: nginx documentation, `ssl_object_cache_inheritable`.

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::{DataFile, Memory, Source, Stamp};

/// A source that keeps what was read from it.
#[derive(Debug)]
pub struct Recorder<S> {
    inner: S,
    record: Rc<RefCell<Memory>>,
    /// What an earlier load had of files.
    earlier: Option<Memory>,
}

impl<S> Recorder<S> {
    /// Records what is read from `inner`.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            record: Rc::default(),
            earlier: None,
        }
    }

    /// The same with what an earlier load had: objects whose files have not been replaced are taken from it.
    #[must_use]
    pub fn with_earlier(mut self, earlier: Option<Memory>) -> Self {
        self.earlier = earlier;
        self
    }

    fn keep(&self, path: &Path, bytes: &[u8], stamp: Option<Stamp>) {
        let mut record = self.record.borrow_mut();
        record.add_file(path, bytes);
        match stamp {
            Some(stamp) => record.add_stamp(path, stamp),
            None => drop(record.stamps.remove(path)),
        }
    }

    /// The record, shared: it fills while the recorder, which a loader may own by then, is read from.
    pub fn record(&self) -> Rc<RefCell<Memory>> {
        Rc::clone(&self.record)
    }
}

impl<S: Source> Source for Recorder<S> {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        // Looked at first: a change while it is read is one that comes after this state.
        let stamp = self.inner.stamp(path);
        let text = self.inner.read(path)?;
        self.keep(path, &text, stamp);
        Ok(text)
    }

    fn read_piped(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let stamp = self.inner.stamp(path);
        let text = self.inner.read_piped(path)?;
        self.keep(path, &text, stamp);
        Ok(text)
    }

    fn read_object(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let known = self.earlier.as_ref().and_then(|files| files.stamped(path));
        let Some((bytes, then)) = known else {
            return self.read(path);
        };
        match self.inner.stamp(path) {
            Some(now) if now.is_inherited(then) => {
                let bytes = bytes.to_vec();
                self.keep(path, &bytes, Some(then));
                Ok(bytes)
            }
            _ => self.read(path),
        }
    }

    fn open(&mut self, path: &Path) -> io::Result<DataFile> {
        let file = self.inner.open(path)?;
        self.record.borrow_mut().add_opened(path, file.clone());
        Ok(file)
    }

    fn glob(&mut self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        let paths = self.inner.glob(pattern)?;
        self.record.borrow_mut().add_glob(pattern, paths.clone());
        Ok(paths)
    }

    /// A host that was found before keeps its addresses: one load sees one answer, and so does who replays the record.
    fn addresses(&mut self, host: &str) -> io::Result<Vec<IpAddr>> {
        if let Ok(known) = self.record.borrow_mut().addresses(host) {
            return Ok(known);
        }
        let addresses = self.inner.addresses(host)?;
        self.record.borrow_mut().add_host(host, addresses.clone());
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Disk;

    fn shown(source: &mut impl Source, pattern: &str) -> Vec<String> {
        let paths = source.glob(pattern).expect("the source can be searched");
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    }

    fn site() -> Memory {
        ["/c/b.conf", "/c/a.conf", "/c/a.txt"]
            .into_iter()
            .fold(Memory::default(), |memory, path| {
                memory.with_file(path, path)
            })
    }

    #[test]
    fn a_record_answers_as_the_recorded_source_did() {
        let mut recorder = Recorder::new(site());
        let record = recorder.record();
        recorder.read(Path::new("/c/a.txt")).expect("it is there");
        let globbed = shown(&mut recorder, "/c/*.conf");
        let mut replay = record.borrow().clone();
        assert_eq!(shown(&mut replay, "/c/*.conf"), globbed);
        assert_eq!(
            replay
                .files()
                .map(|(path, _)| path.display().to_string())
                .collect::<Vec<_>>(),
            ["/c/a.txt"]
        );
        assert_eq!(replay.globs().count(), 1);
    }

    #[test]
    fn a_record_keeps_what_was_opened_apart_from_texts() {
        let mut recorder = Recorder::new(site());
        let record = recorder.record();
        recorder.open(Path::new("/c/a.txt")).expect("it is there");
        recorder.open(Path::new("/none")).expect_err("it is not");
        let mut replay = record.borrow().clone();
        assert_eq!((replay.files().count(), replay.opened().count()), (0, 1));
        let data = replay.open(Path::new("/c/a.txt")).expect("it was recorded");
        assert_eq!(data.read().expect("it is memory"), b"/c/a.txt");
        replay
            .open(Path::new("/c/b.conf"))
            .expect_err("nobody asked for it");
    }

    #[test]
    fn an_object_is_that_of_an_earlier_load_until_its_file_is_replaced() {
        let path = std::env::temp_dir().join(format!("firstbyte-object-{}", std::process::id()));
        let write = |text: &str, whole_seconds: bool| {
            fs::write(&path, text).expect("a file can be written");
            if whole_seconds {
                let file = fs::File::options().write(true).open(&path);
                let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
                file.and_then(|file| file.set_modified(time))
                    .expect("its time can be set");
            }
        };
        let read = |earlier: Option<&Rc<RefCell<Memory>>>| {
            let earlier = earlier.map(|record| record.borrow().clone());
            let mut source = Recorder::new(Disk::default()).with_earlier(earlier);
            let object = source.read_object(&path).expect("it is there");
            let text = source.read(&path).expect("it is there");
            (object, text, source.record())
        };
        write("one", true);
        let (object, _, first) = read(None);
        assert_eq!(object, b"one");
        write("two", true);
        let (object, text, second) = read(Some(&first));
        assert_eq!((object, text), (b"one".to_vec(), b"two".to_vec()));
        write("three", false);
        let (object, ..) = read(Some(&second));
        fs::remove_file(&path).expect("it was made");
        assert_eq!(object, b"three");
    }

    #[test]
    fn hosts_are_looked_up_once_and_replayed() {
        fn lookup(host: &str) -> io::Result<Vec<IpAddr>> {
            match host {
                "a" => Ok(["127.0.0.2", "127.0.0.1", "127.0.0.2"]
                    .map(|ip| ip.parse().expect("an address"))
                    .to_vec()),
                "empty" => Ok(Vec::new()),
                _ => Err(io::ErrorKind::Other.into()),
            }
        }
        let mut recorder = Recorder::new(Disk::with_lookup(lookup));
        let found = recorder.addresses("a").expect("it is there");
        let shown: Vec<_> = found.iter().map(IpAddr::to_string).collect();
        assert_eq!(shown, ["127.0.0.2", "127.0.0.1"], "each once, in order");
        assert!(recorder.addresses("empty").is_err() && recorder.addresses("b").is_err());
        // A second look within the same load gives the same, whatever the system says by then.
        recorder.inner = Disk::with_lookup(|_| Err(io::ErrorKind::Other.into()));
        assert_eq!(recorder.addresses("a").expect("known"), found);
        let mut replay = recorder.record().borrow().clone();
        assert_eq!(replay.addresses("a").expect("recorded"), found);
        assert!(replay.addresses("b").is_err());
        assert_eq!(replay.hosts().count(), 1);
    }
}
