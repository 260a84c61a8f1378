//! `compress_cache`: the compressed forms of files, beside the files in the cache.
//!
//! A form belongs to the value that `Files::open` gave for its file, not to a name. The look at the path that decides
//! whether that value still serves decides about the form as well: a file that changed in any way comes with another
//! value, which has no form. Only files that have settled get one, so that no change escapes that look. Forms are evicted
//! by S3-FIFO; one whose file is not kept any more is found by no one, and goes when later ones come.

use std::cell::RefCell;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::rc::{Rc, Weak};

use server_base::files::Opened;
use server_base::s3_fifo::S3Fifo;

use super::coding::Params;

/// The compressed form of a file; `None` where it is to be made.
pub(super) fn find(file: &Rc<Opened>, params: Params) -> Option<Rc<[u8]>> {
    THREAD.with_borrow_mut(|forms| forms.find(file, params))
}

/// Where a form is to be kept when it is made.
pub(super) struct Keep {
    /// The file.
    pub(super) place: Rc<Opened>,
    /// The parameters of compression, a part of the key.
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

/// The file that a form may be kept with.
pub(super) fn place(source: Option<&Rc<Opened>>) -> Option<&Rc<Opened>> {
    source.filter(|opened| opened.settled)
}

thread_local! {
    static THREAD: RefCell<Forms> = RefCell::default();
}

/// The forms of one thread.
struct Forms {
    entries: S3Fifo<Form>,
    /// Where the search for forms of files that are not kept any more goes on.
    next: u32,
}

struct Form {
    /// Its address in memory is not reused while the form refers to it.
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

    fn keep(
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
        // A limit that was lowered is reached piece by piece; until then nothing is kept.
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

    /// Looks at some forms whether their files are still kept.
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

/// Bytes that an entry is accounted with beside its own: the slot, and the file's value, whose memory the form holds.
const ENTRY_BYTES: u64 = 256;

/// No form takes more than this part of the room.
const LARGEST_PART: u64 = 4;

/// Number of forms that are examined for each that is kept.
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
        forms.keep(&one, PARAMS, &bytes(7), 4096);
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
            forms.keep(file, PARAMS, &bytes(each), 4096);
        }
        assert_eq!((forms.entries.weight(), forms.entries.len()), (4096, 4));
        for _ in 0..2 {
            assert!(forms.find(&files[0], PARAMS).is_some());
        }
        forms.keep(&files[4], PARAMS, &bytes(each), 4096);
        assert!(forms.find(&files[0], PARAMS).is_some());
        assert!(forms.find(&files[1], PARAMS).is_none());
        files.truncate(1);
        forms.keep(&file(), PARAMS, &bytes(each), 4096);
        assert_eq!((forms.entries.weight(), forms.entries.len()), (2048, 2));
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
        assert_eq!((forms.entries.weight(), forms.entries.len()), (1024, 1));
    }

    #[test]
    fn a_lowered_limit_is_reached_in_pieces() {
        let mut forms = Forms::default();
        let files: Vec<Rc<Opened>> = (0..200).map(|_| file()).collect();
        for file in &files {
            forms.keep(file, PARAMS, &bytes(0), 1 << 20);
        }
        let kept = |forms: &Forms| forms.entries.len();
        assert!(!forms.keep(&files[0], PARAMS, &bytes(0), 2048));
        assert_eq!(kept(&forms), 200 - RELEASED_MAX);
        while !forms.keep(&files[0], PARAMS, &bytes(0), 2048) {}
        assert_eq!(forms.entries.weight(), 2048);
    }
}
