//! Identity of the process: users and groups by name, and dropping root's rights.
//!
//! libc makes these changes for every thread of the process, unlike the bare system calls. Source: setuid(2),
//! initgroups(3), getpwnam(3).

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_keep_capabilities};

use super::check;

/// A user of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The number of the user's own group.
    pub gid: u32,
}

/// Finds a user by name.
///
/// # Errors
/// The user database cannot be read, or `name` holds a NUL.
pub fn lookup_user(name: &str) -> io::Result<Option<User>> {
    lookup(name, libc::getpwnam_r, |record| User {
        uid: record.pw_uid,
        gid: record.pw_gid,
    })
}

/// Finds the number of a group by name.
///
/// # Errors
/// The group database cannot be read, or `name` holds a NUL.
pub fn lookup_group(name: &str) -> io::Result<Option<u32>> {
    lookup(name, libc::getgrnam_r, |record| record.gr_gid)
}

/// A call that fills a record of type `T`: the name, the record, space for the targets of its pointers and its
/// length, and a pointer to the record if it was found.
type Lookup<T> = unsafe extern "C" fn(
    *const libc::c_char,
    *mut T,
    *mut libc::c_char,
    libc::size_t,
    *mut *mut T,
) -> libc::c_int;

/// Finds the record of a name and reads it while the targets of its pointers are valid; `T` is libc's type of it.
fn lookup<T, R>(name: &str, call: Lookup<T>, read: fn(&T) -> R) -> io::Result<Option<R>> {
    let name = CString::new(name)?;
    let mut space = vec![0; RECORD_BYTES];
    loop {
        let mut record = MaybeUninit::<T>::uninit();
        let mut found = std::ptr::null_mut();
        // SAFETY: every pointer is valid for the call, and the length is that of `space`.
        let error = unsafe {
            call(
                name.as_ptr(),
                record.as_mut_ptr(),
                space.as_mut_ptr(),
                space.len(),
                &raw mut found,
            )
        };
        if !retry_with_more(error, &mut space)? {
            // SAFETY: the pointer is null, or points to the record, which is then filled.
            return Ok(unsafe { found.as_ref() }.map(read));
        }
    }
}

/// Makes more space if the record needs it; true if so.
fn retry_with_more(error: libc::c_int, space: &mut Vec<libc::c_char>) -> io::Result<bool> {
    match error {
        libc::ERANGE if space.len() < RECORD_BYTES_MAX => {
            space.resize(space.len() * 2, 0);
            Ok(true)
        }
        // "Not found" has different numbers on different systems: getpwnam(3) lists these.
        0 | libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => Ok(false),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Which step of giving up root failed.
#[derive(Debug)]
pub struct BecomeError {
    /// The call with its arguments, in the form of nginx's log: `setgid(33)`.
    pub call: String,
    /// The system's error.
    pub error: io::Error,
    /// The process must not continue after a failure of this step.
    pub fatal: bool,
}

/// Makes the whole process run as `user` with group `gid` and the groups of `name`; must be called before it has
/// threads. Of root's rights it may keep CAP_NET_RAW, to bind sockets to addresses that are not local
/// (IP_TRANSPARENT).
///
/// # Errors
/// The step that failed. Only a failure of `initgroups` is not fatal, as in nginx, and only if the process has lost
/// its former groups; the user has changed then.
pub fn become_user(uid: u32, gid: u32, name: &str, keep_net_raw: bool) -> Result<(), BecomeError> {
    let failed = |call: String, fatal| move |error| BecomeError { call, error, fatal };
    // SAFETY: the call takes a number.
    check(unsafe { libc::setgid(gid) }).map_err(failed(format!("setgid({gid})"), true))?;
    let groups = set_groups(name, gid);
    // Root's own groups must not stay, but with root.
    if groups.is_err() && uid != 0 {
        let none = std::ptr::null();
        // SAFETY: with a count of 0 no group is read from the pointer.
        if let Err(error) = check(unsafe { libc::setgroups(0, none) }) {
            return Err(failed(format!("initgroups({name}, {gid})"), true)(
                groups.err().unwrap_or(error),
            ));
        }
    }
    // A root process has that right and all others.
    let keep_net_raw = keep_net_raw && uid != 0;
    if keep_net_raw {
        let kept = set_keep_capabilities(true).map_err(io::Error::from);
        kept.map_err(failed("prctl(PR_SET_KEEPCAPS, 1)".to_owned(), true))?;
    }
    // SAFETY: the call takes a number.
    check(unsafe { libc::setuid(uid) }).map_err(failed(format!("setuid({uid})"), true))?;
    if keep_net_raw {
        let sets = CapabilitySets {
            effective: CapabilitySet::NET_RAW,
            permitted: CapabilitySet::NET_RAW,
            inheritable: CapabilitySet::empty(),
        };
        let taken = set_capabilities(None, sets).map_err(io::Error::from);
        taken.map_err(failed("capset()".to_owned(), true))?;
    }
    groups.map_err(failed(format!("initgroups({name}, {gid})"), false))
}

fn set_groups(name: &str, gid: u32) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: `name` ends with NUL and lives through the call.
    check(unsafe { libc::initgroups(name.as_ptr(), gid) })?;
    Ok(())
}

/// The process has root's rights.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Forbids the process and its children to gain rights by set-user-ID bits and the like.
///
/// # Errors
/// None is known.
pub fn forbid_new_privileges() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Allows or forbids core dumps and tracing of the process; after a change of user they are off.
///
/// # Errors
/// None is known.
pub fn set_dumpable(on: bool) -> io::Result<()> {
    let behavior = if on {
        DumpableBehavior::Dumpable
    } else {
        DumpableBehavior::NotDumpable
    };
    Ok(rustix::process::set_dumpable_behavior(behavior)?)
}

/// Changes the owner of an open file to `uid` and keeps its group.
///
/// # Errors
/// The process may not.
pub fn chown(file: impl AsFd, uid: u32) -> io::Result<()> {
    Ok(rustix::fs::fchown(
        file,
        Some(rustix::fs::Uid::from_raw(uid)),
        None,
    )?)
}

const RECORD_BYTES: usize = 1024;
const RECORD_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_user_and_group_zero() {
        assert_eq!(
            lookup_user("root").expect("a database"),
            Some(User { uid: 0, gid: 0 })
        );
        assert_eq!(lookup_group("root").expect("a database"), Some(0));
    }

    #[test]
    fn unknown_names_are_none() {
        assert_eq!(lookup_user("no-such-user-here").expect("a database"), None);
        assert_eq!(
            lookup_group("no-such-group-here").expect("a database"),
            None
        );
        lookup_user("a\0b").expect_err("NUL");
    }
}
