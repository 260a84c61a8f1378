//! State shared by the SSI commands of a request and its subrequests: variables, blocks, captures.
//!
//! Source: nginx documentation, `ngx_http_ssi_module`.

use server_http::exchange::{Ctx, Exchange};
use server_http::vars;

/// Stored with the extensions of the client's request, which subrequests share.
#[derive(Default)]
pub(super) struct Shared {
    variables: Vec<(Vec<u8>, Vec<u8>)>,
    /// Groups of the last expression that matched, the whole match first.
    captures: Vec<Vec<u8>>,
    blocks: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes in variables and blocks.
    bytes: usize,
}

impl Shared {
    /// Returns the state of an exchange.
    pub(super) fn of(x: &mut Exchange) -> &mut Self {
        if x.extensions.get::<Self>().is_none() {
            x.extensions.push(Self::default());
        }
        x.extensions.get_mut().expect("it was put there above")
    }

    /// A variable that was set, or a group of the last expression.
    fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        if let [digit @ b'0'..=b'9'] = name
            && let Some(capture) = self.captures.get(usize::from(digit - b'0'))
        {
            return Some(capture);
        }
        let found = self.variables.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_slice())
    }

    /// Sets a variable; false if there is no room for it.
    pub(super) fn set(&mut self, name: &[u8], value: Vec<u8>) -> bool {
        let name = name.to_ascii_lowercase();
        let found = self.variables.iter_mut().find(|(own, _)| *own == name);
        let before = found.as_ref().map_or(0, |(_, old)| old.len());
        let added = value.len() + if found.is_some() { 0 } else { name.len() };
        if self.bytes - before + added > SHARED_MAX_BYTES {
            return false;
        }
        self.bytes = self.bytes - before + added;
        match found {
            Some((_, old)) => *old = value,
            None => self.variables.push((name, value)),
        }
        true
    }

    /// Stores the groups of a match.
    pub(super) fn capture(&mut self, captures: Vec<Vec<u8>>) {
        self.captures = captures;
    }

    /// Begins a block.
    pub(super) fn begin_block(&mut self, name: Vec<u8>) {
        self.bytes += name.len();
        self.blocks.push((name, Vec::new()));
    }

    /// Appends to the current block; false if there is no room.
    pub(super) fn add_to_block(&mut self, text: &[u8]) -> bool {
        if self.bytes + text.len() > SHARED_MAX_BYTES {
            return false;
        }
        self.bytes += text.len();
        if let Some((_, block)) = self.blocks.last_mut() {
            block.extend_from_slice(text);
        }
        true
    }

    /// Returns the block with this name, the first of several.
    pub(super) fn block(&self, name: &[u8]) -> Option<&[u8]> {
        let found = self.blocks.iter().find(|(own, _)| own == name);
        found.map(|(_, text)| text.as_slice())
    }
}

/// Appends the value of a variable of SSI or of the server; false if it has none.
pub(super) fn append(x: &mut Exchange, cx: &mut Ctx<'_>, name: &[u8], out: &mut Vec<u8>) -> bool {
    let name = name.to_ascii_lowercase();
    if let Some(value) = Shared::of(x).variable(&name) {
        out.extend_from_slice(value);
        return true;
    }
    vars::append_by_name(&name, x, cx, out)
}

/// Maximum size of the variables and blocks of a request, bytes.
const SHARED_MAX_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_without_case_and_replaced() {
        let mut shared = Shared::default();
        assert!(shared.set(b"Name", b"one".to_vec()));
        assert_eq!(shared.variable(b"name"), Some(&b"one"[..]));
        assert!(shared.set(b"name", b"two".to_vec()));
        assert_eq!(shared.variable(b"name"), Some(&b"two"[..]));
        shared.capture(vec![b"whole".to_vec(), b"group".to_vec()]);
        assert_eq!(shared.variable(b"1"), Some(&b"group"[..]));
        assert_eq!(shared.variable(b"2"), None);
    }

    #[test]
    fn what_a_request_keeps_is_bounded() {
        let mut shared = Shared::default();
        let most = SHARED_MAX_BYTES - 1;
        assert!(!shared.set(b"a", vec![0; most + 1]));
        assert!(shared.set(b"a", vec![0; most]));
        assert!(
            shared.set(b"a", vec![1; most]),
            "in the place of the old value"
        );
        shared.begin_block(Vec::new());
        assert!(!shared.add_to_block(b"x"));
        assert!(shared.set(b"a", vec![1; most - 1]));
        assert!(shared.add_to_block(b"x"));
        assert_eq!(shared.block(b""), Some(&b"x"[..]));
    }
}
