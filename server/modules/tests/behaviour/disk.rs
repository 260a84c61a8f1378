//! Files in memory, behind the interface of the core.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use engines::http::{FileHandle, SharedBytes};
use server_base::files::{DirEntry, FileError, Files, Meta, OpenPolicy, Opened};

use crate::site::MODIFIED_S;

/// Files by their path, and the opened ones of those with a descriptor.
#[derive(Default)]
pub(crate) struct Disk(
    pub(crate) BTreeMap<Vec<u8>, Node>,
    BTreeMap<Vec<u8>, Rc<Opened>>,
);

pub(crate) enum Node {
    Dir,
    /// Content, and its descriptor, if it is read from one.
    File(Rc<[u8]>, Option<FileHandle>),
}

impl Disk {
    pub(crate) fn add(&mut self, path: &str, node: Node) {
        for (at, _) in path.match_indices('/').skip(1) {
            self.0.entry(path[..at].into()).or_insert(Node::Dir);
        }
        self.0.insert(path.into(), node);
    }

    /// Adds a file that is read from its descriptor.
    pub(crate) fn add_descriptor(&mut self, path: &str, bytes: &[u8]) {
        static FILES: AtomicU32 = AtomicU32::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let name = format!("firstbyte-site-{}-{number}", std::process::id());
        let place = std::env::temp_dir().join(name);
        fs::write(&place, bytes).expect("the temporary directory is writable");
        let handle = Rc::new(File::open(&place).expect("the file was made above").into());
        fs::remove_file(place).expect("the file was made above");
        self.add(path, Node::File(bytes.into(), Some(handle)));
    }

    pub(crate) fn look(&self, path: &[u8]) -> Result<&Node, FileError> {
        let missing = FileError {
            errno: server_base::files::ENOENT,
            call: "open()",
        };
        let dir = path.ends_with(b"/");
        let bare = path.strip_suffix(b"/").unwrap_or(path);
        match self.0.get(bare) {
            Some(Node::File(..)) if dir => Err(FileError {
                errno: server_base::files::ENOTDIR,
                ..missing
            }),
            Some(node) => Ok(node),
            None => {
                let in_file = |at: usize| matches!(self.0.get(&bare[..at]), Some(Node::File(..)));
                let below_file = (0..bare.len()).any(|at| bare[at] == b'/' && in_file(at));
                let errno = if below_file {
                    server_base::files::ENOTDIR
                } else {
                    server_base::files::ENOENT
                };
                Err(FileError { errno, ..missing })
            }
        }
    }
}

fn meta(node: &Node) -> Meta {
    let size = if let Node::File(text, _) = node {
        text.len() as u64
    } else {
        0
    };
    let is_dir = matches!(node, Node::Dir);
    Meta {
        size,
        mtime_s: MODIFIED_S,
        ino: 1,
        dev: 1,
        is_dir,
        is_file: !is_dir,
        mode: if is_dir { 0o755 } else { 0o644 },
        ..Meta::default()
    }
}

impl Files for Disk {
    fn open(&mut self, path: &[u8], _: &OpenPolicy) -> Result<Rc<Opened>, FileError> {
        let node = self.look(path)?;
        let (file, content) = match node {
            Node::Dir => (None, None),
            Node::File(_, Some(handle)) => (Some(Rc::clone(handle)), None),
            Node::File(text, None) => {
                let null = File::open("/dev/null").expect("every system has it");
                (Some(Rc::new(null.into())), Some(Rc::clone(text)))
            }
        };
        let meta = meta(node);
        let settled = matches!(node, Node::File(_, Some(_)));
        // An opened file is reused as long as it has the same descriptor.
        let known = self.1.get(path).filter(|known| {
            let pair = known.file.as_ref().zip(file.as_ref());
            pair.is_some_and(|(one, other)| Rc::ptr_eq(one, other))
        });
        if let Some(known) = known {
            return Ok(Rc::clone(known));
        }
        let mut opened = match content {
            Some(text) => Opened::with_content(meta, &mut Vec::new(), |out| {
                out.extend_from_slice(&text);
                Some(())
            })
            .expect("it is in memory"),
            None => Opened::new(None, meta),
        };
        (opened.file, opened.settled) = (file, settled);
        let opened = Rc::new(opened);
        if settled {
            self.1.insert(path.into(), Rc::clone(&opened));
        }
        Ok(opened)
    }

    fn content(&mut self, opened: &Opened) -> Option<SharedBytes> {
        opened.content()
    }

    fn stat(&mut self, path: &[u8], _: &OpenPolicy) -> Result<Meta, FileError> {
        self.look(path).map(meta)
    }

    fn list(&mut self, path: &[u8]) -> Result<Vec<DirEntry>, FileError> {
        if !matches!(self.look(path)?, Node::Dir) {
            return Err(FileError {
                errno: server_base::files::ENOTDIR,
                call: "opendir()",
            });
        }
        let inside = |(name, node): (&Vec<u8>, &Node)| {
            let name = name.strip_prefix(path)?;
            (!name.is_empty() && !name.contains(&b'/') && !name.starts_with(b".")).then(|| {
                DirEntry {
                    name: name.to_vec(),
                    meta: Ok(meta(node)),
                }
            })
        };
        Ok(self.0.iter().rev().filter_map(inside).collect())
    }
}
