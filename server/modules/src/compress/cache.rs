//! `compress_cache`: caches compressed forms of files.
//!
//! A form belongs to the `Opened` value that `Files::open` returned, not to a name. A changed file gets a new value,
//! which has no form, so the check of the file is the check of the form too. Only settled files get a form, since that
//! check could miss a change of others. S3-FIFO evicts forms. A form without its file cannot be found; later inserts
//! remove it.

use std::cell::RefCell;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::rc::{Rc, Weak};

use server_base::files::Opened;
use server_base::s3_fifo::S3Fifo;

use super::coding::Params;

/// Returns the compressed form of a file, if it is cached.
pub(super) fn find(file: &Rc<Opened>, params: Params) -> Option<Rc<[u8]>> {
    THREAD.with_borrow_mut(|forms| forms.find(file, params))
}

/// The cache entry for a form that is being compressed.
pub(super) struct CacheSlot {
    /// The file.
    pub(super) place: Rc<Opened>,
    /// The parameters of compression, a part of the key.
    pub(super) params: Params,
    /// `compress_cache`.
    pub(super) limit_bytes: u64,
}

impl CacheSlot {
    /// Caches a form within the limit of the thread; false if it is too large.
    pub(super) fn insert(&self, form: &Rc<[u8]>) -> bool {
        let limit_bytes = self.limit_bytes;
        THREAD.with_borrow_mut(|forms| forms.insert(&self.place, self.params, form, limit_bytes))
    }

    /// Maximum length of a cached form, bytes.
    pub(super) fn most_bytes(&self) -> u64 {
        (self.limit_bytes / LARGEST_PART).saturating_sub(ENTRY_BYTES)
    }
}

/// Returns the file if a form of it may be cached.
pub(super) fn place(source: Option<&Rc<Opened>>) -> Option<&Rc<Opened>> {
    source.filter(|opened| opened.settled)
}

thread_local! {
    static THREAD: RefCell<Forms> = RefCell::default();
}

/// The forms of one thread.
struct Forms {
    entries: S3Fifo<Form>,
    /// Position at which the next search for forms without a file begins.
    next: u32,
}

struct Form {
    /// The weak reference keeps its address from being reused.
    file: Weak<Opened>,
    params: Params,
    bytes: Rc<[u8]>,
}

impl Default for Forms {
    fn default() -> Self {
        Self {
            entries: S3Fifo::new(0),
            next: 0,
        }
    }
}

impl Forms {
    fn find(&mut self, file: &Rc<Opened>, params: Params) -> Option<Rc<[u8]>> {
        let place = self.place(file, params)?;
        let form = self.entries.use_at(place)?;
        Some(Rc::clone(&form.bytes))
    }

    fn place(&self, file: &Rc<Opened>, params: Params) -> Option<u32> {
        let own = Rc::as_ptr(file);
        let is_it = |form: &Form| form.file.as_ptr() == own && form.params == params;
        self.entries.find(hash(file, params), is_it)
    }

    fn insert(
        &mut self,
        file: &Rc<Opened>,
        params: Params,
        bytes: &Rc<[u8]>,
        limit_bytes: u64,
    ) -> bool {
        let size = bytes.len() as u64 + ENTRY_BYTES;
        if size > limit_bytes / LARGEST_PART {
            return false;
        }
        self.entries.set_limit(limit_bytes);
        self.forget_closed();
        // A lowered limit is reached gradually; until then nothing is inserted.
        let shrunk = (0..RELEASED_MAX).any(|_| self.entries.shrink().is_none());
        if !shrunk {
            return false;
        }
        if let Some(before) = self.place(file, params) {
            self.entries.remove(before);
        }
        let form = Form {
            file: Rc::downgrade(file),
            params,
            bytes: Rc::clone(bytes),
        };
        self.entries.insert(hash(file, params), size, form).is_ok()
    }

    /// Removes forms without a file among the next few entries.
    fn forget_closed(&mut self) {
        for _ in 0..LOOKS_A_FORM {
            self.next = match self.next + 1 {
                next if (next as usize) < self.entries.slots() => next,
                _ => 0,
            };
            let form = self.entries.at_mut(self.next);
            if form.is_some_and(|form| form.file.strong_count() == 0) {
                self.entries.remove(self.next);
            }
        }
    }
}

fn hash(file: &Rc<Opened>, params: Params) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((Rc::as_ptr(file), params))
}

/// Overhead of an entry, bytes: the slot, and the `Opened` value that the weak reference keeps allocated.
const ENTRY_BYTES: u64 = 256;

/// A form larger than this fraction of the limit is not cached.
const LARGEST_PART: u64 = 4;

/// Forms examined at each insert.
const LOOKS_A_FORM: usize = 8;

/// Maximum number of forms that are released at once after the limit was lowered.
const RELEASED_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use server_base::files::Meta;

    use super::super::coding::Coding;
    use super::*;

    const PARAMS: Params = Params {
        coding: Coding::Gzip,
        level: 1,
        window_log: 0,
    };

    fn file() -> Rc<Opened> {
        Rc::new(Opened::new(None, Meta::default()))
    }

    fn bytes(len: usize) -> Rc<[u8]> {
        vec![0; len].into()
    }

    #[test]
    fn a_form_is_found_by_file_and_parameters() {
        let mut forms = Forms::default();
        let (one, other) = (file(), file());
        forms.insert(&one, PARAMS, &bytes(7), 4096);
        assert_eq!(forms.find(&one, PARAMS).map(|b| b.len()), Some(7));
        assert_eq!(forms.find(&other, PARAMS), None);
        let better = Params { level: 2, ..PARAMS };
        assert_eq!(forms.find(&one, better), None);
    }

    #[test]
    fn forms_of_files_that_are_not_kept_go_and_then_what_is_not_used() {
        let each = 1024 - ENTRY_BYTES as usize;
        let mut forms = Forms::default();
        let mut files: Vec<Rc<Opened>> = (0..5).map(|_| file()).collect();
        for file in &files[..4] {
            forms.insert(file, PARAMS, &bytes(each), 4096);
        }
        assert_eq!((forms.entries.weight(), forms.entries.len()), (4096, 4));
        for _ in 0..2 {
            assert!(forms.find(&files[0], PARAMS).is_some());
        }
        forms.insert(&files[4], PARAMS, &bytes(each), 4096);
        assert!(forms.find(&files[0], PARAMS).is_some());
        assert!(forms.find(&files[1], PARAMS).is_none());
        files.truncate(1);
        forms.insert(&file(), PARAMS, &bytes(each), 4096);
        assert_eq!((forms.entries.weight(), forms.entries.len()), (2048, 2));
        assert!(forms.find(&files[0], PARAMS).is_some());
    }

    #[test]
    fn one_form_never_takes_the_room_of_all() {
        let mut forms = Forms::default();
        let file = file();
        assert!(!forms.insert(&file, PARAMS, &bytes(1025 - ENTRY_BYTES as usize), 4096));
        assert!(forms.entries.is_empty());
        forms.insert(&file, PARAMS, &bytes(1024 - ENTRY_BYTES as usize), 4096);
        forms.insert(&file, PARAMS, &bytes(1024 - ENTRY_BYTES as usize), 4096);
        assert_eq!((forms.entries.weight(), forms.entries.len()), (1024, 1));
    }

    #[test]
    fn a_lowered_limit_is_reached_in_pieces() {
        let mut forms = Forms::default();
        let files: Vec<Rc<Opened>> = (0..200).map(|_| file()).collect();
        for file in &files {
            forms.insert(file, PARAMS, &bytes(0), 1 << 20);
        }
        let kept = |forms: &Forms| forms.entries.len();
        assert!(!forms.insert(&files[0], PARAMS, &bytes(0), 2048));
        assert_eq!(kept(&forms), 200 - RELEASED_MAX);
        while !forms.insert(&files[0], PARAMS, &bytes(0), 2048) {}
        assert_eq!(forms.entries.weight(), 2048);
    }
}
