//! Records the answers of a source for replay; keeps objects beyond a load.
//!
//! Absent: reading again without a request.
//!
//! Source: nginx documentation, `ssl_object_cache_inheritable`.

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::memory::{ReadFile, Reading, RecordedFile, is_same};
use crate::shared_map::Revision;
use crate::{DataFile, Memory, Source, Stamp};

/// A source that records all answers of another source.
#[derive(Debug)]
pub struct Recorder<S> {
    inner: S,
    record: Rc<RefCell<Memory>>,
    /// The files of an earlier load.
    earlier: Option<Arc<Memory>>,
    /// Objects are reused from it, too, not only texts.
    inherits_objects: bool,
}

impl<S> Recorder<S> {
    /// Records the reads from `inner`.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            record: Rc::default(),
            earlier: None,
            inherits_objects: false,
        }
    }

    /// Makes a recorder on top of an earlier load: texts of unchanged files are reused from it, with `objects` also objects.
    #[must_use]
    pub fn with_earlier(mut self, earlier: Option<Arc<Memory>>, objects: bool) -> Self {
        self.earlier = earlier;
        self.inherits_objects = objects;
        self
    }

    fn record_file(
        &self,
        reading: Reading,
        path: &Path,
        bytes: &Arc<Vec<u8>>,
        stamp: Option<Stamp>,
    ) {
        let bytes = Arc::clone(bytes);
        let mut record = self.record.borrow_mut();
        record.add_by(reading, path, bytes, stamp);
    }

    /// The record, shared: it fills while the recorder, which a loader may own by then, is read from.
    pub fn record(&self) -> Rc<RefCell<Memory>> {
        Rc::clone(&self.record)
    }
}

impl<S: Source> Recorder<S> {
    /// Repeats every read of the earlier load, follows its patterns to new files, and returns the record of the present state.
    /// Files that cannot be read are left out; a load from the record fails if it needs them.
    ///
    /// Returns `None` if this is impossible: there is no earlier load, or it has read a pipe.
    pub fn repeat(mut self) -> Option<Memory> {
        let earlier = self.earlier.take()?;
        if earlier.readings().any(|reading| reading == Reading::Piped) {
            return None;
        }
        // Errors are left to the load: it fails if it needs the file.
        let mut now = earlier.refresh(|path, known, reading| {
            let is_taken = match reading {
                Reading::Text => true,
                Reading::Object => self.inherits_objects,
                Reading::Always | Reading::Piped => false,
            };
            if is_taken && self.is_unchanged(path, known) {
                return Revision::Keep;
            }
            match self.read_file(path, Some(known)) {
                Ok(now) => Revision::Set(now),
                Err(_) => Revision::Remove,
            }
        });
        for (pattern, before) in earlier.globs() {
            let Ok(paths) = self.inner.glob(pattern) else {
                continue;
            };
            if !is_same(&paths, before) {
                for path in &paths {
                    if now.file_with_stamp(path).is_none()
                        && let Ok((bytes, stamp)) = self.read_file(path, None)
                    {
                        now.add_by(Reading::Text, path, bytes, stamp);
                    }
                }
            }
            now.add_glob(pattern, paths);
        }
        for (path, _) in earlier.opened() {
            if let Ok(file) = self.inner.open(path) {
                now.add_opened(path, file);
            }
        }
        for (host, _) in earlier.hosts() {
            if let Ok(addresses) = self.inner.addresses(host) {
                now.add_host(host, addresses);
            }
        }
        Some(now)
    }

    /// Whether it is certain that a file is as it was when it was recorded.
    fn is_unchanged(&mut self, path: &Path, (_, then): RecordedFile<'_>) -> bool {
        let now = then.and_then(|then| Some((then, self.inner.stamp(path)?)));
        now.is_some_and(|(then, now)| now.is_unchanged(then))
    }

    /// Reads a file. Known bytes are shared, so that later comparisons compare pointers.
    fn read_file(&mut self, path: &Path, known: Option<RecordedFile<'_>>) -> io::Result<ReadFile> {
        let (bytes, stamp) = self.inner.read_stamped(path)?;
        let known = known.filter(|(known, _)| ***known == bytes);
        let bytes = known.map_or_else(|| Arc::new(bytes), |(known, _)| Arc::clone(known));
        Ok((bytes, stamp))
    }

    fn read_unless_recorded(&mut self, reading: Reading, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        let earlier = self.earlier.clone();
        let known = earlier
            .as_ref()
            .and_then(|files| files.file_with_stamp(path));
        let (bytes, stamp) = match known {
            Some((bytes, then)) if self.is_unchanged(path, (bytes, then)) => {
                (Arc::clone(bytes), then)
            }
            _ => self.read_file(path, known)?,
        };
        self.record_file(reading, path, &bytes, stamp);
        Ok(bytes)
    }

    fn read_source(&mut self, reading: Reading, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        let (bytes, stamp) = self.read_file(path, None)?;
        self.record_file(reading, path, &bytes, stamp);
        Ok(bytes)
    }
}

impl<S: Source> Source for Recorder<S> {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let text = self.read_source(Reading::Always, path)?;
        Ok(text.to_vec())
    }

    fn read_piped(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let stamp = self.inner.stamp(path);
        let text = self.inner.read_piped(path)?;
        self.record_file(Reading::Piped, path, &Arc::new(text.clone()), stamp);
        Ok(text)
    }

    fn read_text(&mut self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        self.read_unless_recorded(Reading::Text, path)
    }

    fn read_object(&mut self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        match self.inherits_objects {
            true => self.read_unless_recorded(Reading::Object, path),
            false => self.read_source(Reading::Object, path),
        }
    }

    /// The configuration that serves is built from the record.
    fn only_checks(&self) -> bool {
        true
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

    /// A host that was found before keeps its addresses: one load sees one answer, and so does a load that replays the
    /// record.
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

    fn glob_paths(source: &mut impl Source, pattern: &str) -> Vec<String> {
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
        let globbed = glob_paths(&mut recorder, "/c/*.conf");
        let mut replay = record.borrow().clone();
        assert_eq!(glob_paths(&mut replay, "/c/*.conf"), globbed);
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

    /// A function by which a recorder reads bytes.
    type Reading = fn(&mut Recorder<Disk>, &Path) -> io::Result<Arc<Vec<u8>>>;

    const READINGS: [Reading; 2] = [Recorder::read_object, Recorder::read_text];

    /// Reads a file with an earlier record of other bytes; the result shows whether the record was used.
    fn reread(path: &Path, reading: Reading) -> io::Result<Vec<u8>> {
        let mut first = Recorder::new(Disk::default());
        let record = first.record();
        reading(&mut first, path)?;
        plant(&record, path);
        reload(path, record.borrow().clone(), reading)
    }

    /// Replaces the recorded bytes of a file and keeps its recorded state.
    fn plant(record: &RefCell<Memory>, path: &Path) {
        let mut record = record.borrow_mut();
        let stamp = record.file_with_stamp(path).and_then(|(_, stamp)| stamp);
        record.add_read(path, Arc::new(b"taken".to_vec()), stamp);
    }

    fn reload(path: &Path, earlier: Memory, reading: Reading) -> io::Result<Vec<u8>> {
        let earlier = Some(Arc::new(earlier));
        let mut second = Recorder::new(Disk::default()).with_earlier(earlier, true);
        reading(&mut second, path).map(|bytes| bytes.to_vec())
    }

    #[test]
    fn what_was_read_is_that_of_an_earlier_load_while_its_file_stays_as_it_is() {
        let manifest = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let code = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs"));
        let link = std::env::temp_dir().join(format!("firstbyte-object-{}", std::process::id()));
        for reading in READINGS {
            std::os::unix::fs::symlink(manifest, &link).expect("a link can be made");
            assert_eq!(reread(&link, reading).expect("it is there"), b"taken");
            let mut source = Recorder::new(Disk::default());
            let record = source.record();
            reading(&mut source, &link).expect("it is there");
            // The path is the same, and leads to another file.
            fs::remove_file(&link).expect("it was made");
            std::os::unix::fs::symlink(code, &link).expect("a link can be made");
            let object = reload(&link, record.borrow().clone(), reading);
            let code = fs::read(code).expect("it is there");
            assert!(object.is_ok_and(|object| object == code));
            fs::remove_file(&link).expect("it was made");
            let error = reload(&link, record.borrow().clone(), reading).expect_err("it is gone");
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            // A file that was just written may be written again within the same tick of the clock.
            fs::write(&link, "young").expect("a file can be written");
            let object = reread(&link, reading);
            fs::remove_file(&link).expect("it was made");
            assert_eq!(object.expect("it is there"), b"young");
        }
    }

    #[test]
    fn objects_are_read_where_they_are_not_inherited() {
        let manifest = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let mut first = Recorder::new(Disk::default());
        first.read_text(manifest).expect("it is there");
        let record = first.record();
        plant(&record, manifest);
        let earlier = Some(Arc::new(record.borrow().clone()));
        let mut second = Recorder::new(Disk::default()).with_earlier(earlier, false);
        let object = second.read_object(manifest).expect("it is there");
        assert_eq!(*object, fs::read(manifest).expect("it is there"));
        assert_eq!(
            *second.read_text(manifest).expect("it is there"),
            b"taken".to_vec()
        );
    }

    #[test]
    fn what_is_no_text_and_no_object_is_read_whatever_an_earlier_load_had() {
        let manifest = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let mut first = Recorder::new(Disk::default());
        first.read(manifest).expect("it is there");
        let record = first.record();
        plant(&record, manifest);
        let earlier = Arc::new(record.borrow().clone());
        let mut second = Recorder::new(Disk::default()).with_earlier(Some(earlier), true);
        let text = fs::read(manifest).expect("it is there");
        assert_eq!(second.read(manifest).expect("it is there"), text);
        assert!(second.only_checks());
    }

    #[test]
    fn a_load_is_repeated_with_what_there_is_now() {
        fn lookup(_: &str) -> io::Result<Vec<IpAddr>> {
            Ok(vec![[127, 0, 0, 1].into()])
        }
        let place = format!("firstbyte-repeat-{}", std::process::id());
        let dir = std::env::temp_dir().join(place);
        fs::create_dir_all(&dir).expect("a directory can be made");
        let write = |name: &str, text: &str| fs::write(dir.join(name), text).expect("a file");
        for name in ["a.conf", "b.conf", "key", "ticket", "data"] {
            write(name, "old");
        }
        let pattern = dir.join("*.conf").display().to_string();
        let mut first = Recorder::new(Disk::with_lookup(lookup));
        let record = first.record();
        for path in first.glob(&pattern).expect("a directory") {
            first.read_text(&path).expect("a text");
        }
        first.read_object(&dir.join("key")).expect("an object");
        first.read(&dir.join("ticket")).expect("a file");
        first.open(&dir.join("data")).expect("a database");
        first.addresses("a").expect("an address");
        let earlier = Arc::new(record.borrow().clone());
        let repeat = |earlier: &Arc<Memory>| {
            let source = Recorder::new(Disk::with_lookup(lookup));
            source
                .with_earlier(Some(Arc::clone(earlier)), true)
                .repeat()
        };
        for name in ["a.conf", "key", "ticket", "data"] {
            write(name, "new");
        }
        fs::remove_file(dir.join("b.conf")).expect("a file");
        write("c.conf", "added");
        let now = repeat(&earlier).expect("all can be read again");
        let files = now.files().map(|(path, text)| {
            let name = path.file_name().unwrap_or_default();
            format!("{}={}", name.display(), String::from_utf8_lossy(text))
        });
        let mut files: Vec<_> = files.collect();
        files.sort();
        assert_eq!(
            files,
            ["a.conf=new", "c.conf=added", "key=new", "ticket=new"]
        );
        let (_, data) = now.opened().next().expect("a database");
        assert_eq!(data.read().expect("it can be read"), b"new");
        let globbed = now.glob_result(&pattern).expect("a pattern");
        assert_eq!(globbed, [dir.join("a.conf"), dir.join("c.conf")]);
        assert_eq!(now.hosts().count(), 1);
        // All files are too young for their states to count, and are read again. Equal content is shared.
        let again = repeat(&Arc::new(now.clone())).expect("all can be read again");
        for (path, text) in now.files() {
            let (same, _) = again.file_with_stamp(path).expect("it is there");
            assert!(Arc::ptr_eq(same, text), "{}", path.display());
        }
        assert!(
            again
                .difference(&now)
                .is_some_and(|none| none.files().count() == 0)
        );
        // A pipe can be read only once.
        let mut piped = Recorder::new(Disk::default());
        let record = piped.record();
        piped.read_piped(&dir.join("key")).expect("a file");
        let piped = Arc::new(record.borrow().clone());
        fs::remove_dir_all(&dir).expect("it was made");
        assert!(repeat(&piped).is_none());
        assert!(Recorder::new(Disk::default()).repeat().is_none());
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
        // A second lookup within a load returns the recorded addresses, even if the system has others.
        recorder.inner = Disk::with_lookup(|_| Err(io::ErrorKind::Other.into()));
        assert_eq!(recorder.addresses("a").expect("known"), found);
        let mut replay = recorder.record().borrow().clone();
        assert_eq!(replay.addresses("a").expect("recorded"), found);
        assert!(replay.addresses("b").is_err());
        assert_eq!(replay.hosts().count(), 1);
    }
}
