//! Exit statuses of verbs: the same numbers everywhere. Their table is in docs/verbs.md; `manual_tests` compares it with the verbs.
//!
//! Source: POSIX.1-2024, Shell Command Language, 2.8.2.

/// The command line is wrong, or something could not be read, measured or written.
pub(super) const FAILED: u8 = 1;
/// A condition holds: `--fail-if`, `--fail-on` or `--strict`.
pub(super) const CONDITION: u8 = 2;
/// A signal ended the work: 128 and the number of SIGINT, which shells use for it.
pub(super) const INTERRUPTED: u8 = 130;
