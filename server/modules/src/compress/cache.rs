//! `compress_cache`: the compressed forms of files, beside their open descriptors.
//!
//! A form belongs to the descriptor its bytes were read from, not to a name. The look at the path that decides whether
//! that descriptor still serves decides about the form as well: a file that changed in any way comes with another
//! descriptor, which has no form. Only files that have settled get one, so that no change escapes that look. A form
//! whose descriptor is closed is forgotten when room is needed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};

use engines::http::FileHandle;
use server_base::files::Opened;

use super::coding::Params;

/// The compressed form of a file; `None` where it is to be made.
pub(super) fn find(file: &FileHandle, params: Params) -> Option<Rc<[u8]>> {
    THREAD.with_borrow_mut(|forms| forms.find(file, params))
}

/// Where a form is to be kept when it is made.
pub(super) struct Keep {
    /// The file's descriptor.
    pub(super) place: FileHandle,
    /// What is configured, by which the form is found again.
    pub(super) params: Params,
    /// `compress_cache`.
    pub(super) limit_bytes: u64,
}

impl Keep {
    /// Keeps a form within the thread's limit; false if it is too large for that.
    pub(super) fn keep(&self, form: &Rc<[u8]>) -> bool {
        let limit_bytes = self.limit_bytes;
        THREAD.with_borrow_mut(|forms| forms.keep(&self.place, self.params, form, limit_bytes))
    }

    /// The longest form that is kept, bytes.
    pub(super) fn most_bytes(&self) -> u64 {
        (self.limit_bytes / LARGEST_PART).saturating_sub(ENTRY_BYTES)
    }
}

/// The descriptor that a form of the file may be kept with.
pub(super) fn place(source: Option<&Rc<Opened>>) -> Option<&FileHandle> {
    source.filter(|opened| opened.settled)?.file.as_ref()
}

thread_local! {
    static THREAD: RefCell<Forms> = RefCell::default();
}

/// The forms of one thread.
#[derive(Default)]
struct Forms {
    /// By the place of the descriptor in memory, which is nobody else's while the entry refers to it.
    entries: HashMap<(*const OwnedFd, Params), Form>,
    bytes: u64,
    uses: u64,
}

struct Form {
    file: Weak<OwnedFd>,
    bytes: Rc<[u8]>,
    used: u64,
}

impl Forms {
    fn find(&mut self, file: &FileHandle, params: Params) -> Option<Rc<[u8]>> {
        let form = self.entries.get_mut(&(Rc::as_ptr(file), params))?;
        self.uses += 1;
        form.used = self.uses;
        Some(Rc::clone(&form.bytes))
    }

    fn keep(
        &mut self,
        file: &FileHandle,
        params: Params,
        bytes: &Rc<[u8]>,
        limit_bytes: u64,
    ) -> bool {
        let size = bytes.len() as u64 + ENTRY_BYTES;
        if size > limit_bytes / LARGEST_PART {
            return false;
        }
        if self.bytes + size > limit_bytes {
            self.entries.retain(|_, form| form.file.strong_count() > 0);
            self.bytes = self.entries.values().map(Form::size).sum();
        }
        while self.bytes + size > limit_bytes {
            let oldest = self.entries.iter().min_by_key(|(_, form)| form.used);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                return false;
            };
            self.bytes -= self.entries.remove(&key).map_or(0, |form| form.size());
        }
        self.uses += 1;
        let form = Form {
            file: Rc::downgrade(file),
            bytes: Rc::clone(bytes),
            used: self.uses,
        };
        let before = self.entries.insert((Rc::as_ptr(file), params), form);
        self.bytes = self.bytes + size - before.map_or(0, |form| form.size());
        true
    }
}

impl Form {
    fn size(&self) -> u64 {
        self.bytes.len() as u64 + ENTRY_BYTES
    }
}

/// What an entry counts beside its bytes.
const ENTRY_BYTES: u64 = 128;

/// No form takes more than this part of the room.
const LARGEST_PART: u64 = 4;

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::super::coding::Coding;
    use super::*;

    const PARAMS: Params = Params {
        coding: Coding::Gzip,
        level: 1,
        window_log: 0,
    };

    fn file() -> FileHandle {
        Rc::new(File::open("/dev/null").expect("every system has it").into())
    }

    fn bytes(len: usize) -> Rc<[u8]> {
        vec![0; len].into()
    }

    #[test]
    fn a_form_is_found_by_descriptor_and_parameters() {
        let mut forms = Forms::default();
        let (one, other) = (file(), file());
        forms.keep(&one, PARAMS, &bytes(7), 4096);
        assert_eq!(forms.find(&one, PARAMS).map(|b| b.len()), Some(7));
        assert_eq!(forms.find(&other, PARAMS), None);
        let better = Params { level: 2, ..PARAMS };
        assert_eq!(forms.find(&one, better), None);
    }

    #[test]
    fn closed_files_go_first_and_then_the_least_recently_used() {
        let each = 1024 - ENTRY_BYTES as usize;
        let mut forms = Forms::default();
        let files: Vec<FileHandle> = (0..5).map(|_| file()).collect();
        for file in &files[..4] {
            forms.keep(file, PARAMS, &bytes(each), 4096);
        }
        assert_eq!((forms.bytes, forms.entries.len()), (4096, 4));
        assert!(forms.find(&files[0], PARAMS).is_some());
        forms.keep(&files[4], PARAMS, &bytes(each), 4096);
        assert!(forms.find(&files[0], PARAMS).is_some());
        assert!(forms.find(&files[1], PARAMS).is_none());
        let mut files = files;
        files.truncate(1);
        forms.keep(&file(), PARAMS, &bytes(each), 4096);
        assert_eq!((forms.bytes, forms.entries.len()), (2048, 2));
        assert!(forms.find(&files[0], PARAMS).is_some());
    }

    #[test]
    fn one_form_never_takes_the_room_of_all() {
        let mut forms = Forms::default();
        let file = file();
        assert!(!forms.keep(&file, PARAMS, &bytes(1025 - ENTRY_BYTES as usize), 4096));
        assert!(forms.entries.is_empty());
        forms.keep(&file, PARAMS, &bytes(1024 - ENTRY_BYTES as usize), 4096);
        forms.keep(&file, PARAMS, &bytes(1024 - ENTRY_BYTES as usize), 4096);
        assert_eq!((forms.bytes, forms.entries.len()), (1024, 1));
    }
}
