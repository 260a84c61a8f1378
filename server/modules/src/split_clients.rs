//! `split_clients`: a variable with a value selected by the hash of a text.
//!
//! The hash is MurmurHash2, so that a client gets the same value as from nginx.
//!
//! Source: nginx documentation, `ngx_http_split_clients_module`; Austin Appleby, MurmurHash2 with seed 0.

use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::value::Value;
use server_http::vars::Compute;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "split_clients",
    directives: &[ROWS],
    ..Module::EMPTY
};

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Creates a variable; its value depends on the hash of a text, by shares.
    block "split_clients": Contexts::HTTP, TAKE2, "", "string $variable { ... }" => split_clients;
}

/// One `split_clients`.
struct Split {
    source: Value,
    parts: Vec<Part>,
}

/// A share and its value.
struct Part {
    /// Exclusive upper limit of the hashes of this part; `None` for the rest.
    below: Option<u32>,
    value: Vec<u8>,
}

fn split_clients(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let source = Value::compile(b, d, d.word(0))?;
    let name = d.arg(1).strip_prefix(b"$").filter(|n| !n.is_empty());
    let name = name.ok_or_else(|| {
        let text = format!("invalid variable name \"{}\"", d.arg_str(1));
        ConfError::word(d, d.word(1), text)
    })?;
    let mut shares = Vec::new();
    conf::each(b, d.items(), |_, line| {
        let [value] = line.args.as_slice() else {
            let text = "invalid number of the split_clients parameters";
            return Err(ConfError::at(line, text));
        };
        let share = share(&line.name.text).ok_or_else(|| {
            let text = format!("invalid percent value \"{}\"", line.name.as_str());
            ConfError::at(line, text)
        })?;
        shares.push((share, value.text.to_vec()));
        Ok(())
    })?;
    let parts = limits(shares)
        .ok_or_else(|| ConfError::at_close(d, "percent total is greater than 100%"))?;
    b.vars
        .define(name, Arc::new(Split { source, parts }))
        .map_err(|e| ConfError::word(d, d.word(1), e))?;
    Ok(())
}

/// A share in hundredths of a percent; `None` inside for `*`.
pub(crate) fn share(text: &[u8]) -> Option<Option<u64>> {
    if text == b"*" {
        return Some(None);
    }
    let number = text.strip_suffix(b"%").filter(|n| !n.is_empty())?;
    let (mut hundredths, mut decimals) = (0u64, None);
    for byte in number {
        match (byte, decimals) {
            (b'.', None) => decimals = Some(0),
            (b'0'..=b'9', Some(2)) => return None,
            (b'0'..=b'9', _) => {
                hundredths = hundredths
                    .checked_mul(10)?
                    .checked_add(u64::from(byte - b'0'))?;
                decimals = decimals.map(|n: u32| n + 1);
            }
            _ => return None,
        }
    }
    let scaled = hundredths.checked_mul(10u64.pow(2 - decimals.unwrap_or(0)))?;
    (scaled > 0).then_some(Some(scaled))
}

/// Converts shares into limits of the hash; `None` if they exceed 100 %.
fn limits(shares: Vec<(Option<u64>, Vec<u8>)>) -> Option<Vec<Part>> {
    let (mut sum, mut last) = (0u64, 0u32);
    let mut parts = Vec::with_capacity(shares.len());
    for (share, value) in shares {
        sum = match share {
            Some(share) => sum.checked_add(share)?,
            None => ALL,
        };
        let below = match share {
            _ if sum > ALL => return None,
            // Shares are rounded down, so the last one also gets the remainder.
            Some(share) if sum < ALL => {
                last += (share * u64::from(u32::MAX) / ALL) as u32;
                Some(last)
            }
            _ => None,
        };
        parts.push(Part { below, value });
    }
    Some(parts)
}

impl Compute for Split {
    fn compute(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<Vec<u8>> {
        let hash = murmur_hash2(&self.source.to_vec(x, cx));
        let part = self.parts.iter().find(|p| p.below.is_none_or(|b| hash < b));
        Some(part.map(|p| p.value.clone()).unwrap_or_default())
    }
}

/// MurmurHash2 of 32 bits with seed 0.
fn murmur_hash2(text: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let (words, tail) = text.as_chunks::<4>();
    let mut hash = text.len() as u32;
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u32::from_le_bytes(last)).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// All, in hundredths of a percent.
const ALL: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_nginx_uses() {
        for (text, hash) in [
            ("", 0u32),
            ("a", 2_456_313_694),
            ("ab", 446_775_395),
            ("abc", 324_500_635),
            ("abcd", 646_393_889),
            ("192.0.2.1", 3_369_748_723),
            ("hello, world", 1_263_312_256),
        ] {
            assert_eq!(murmur_hash2(text.as_bytes()), hash, "{text}");
        }
    }

    #[test]
    fn shares_have_two_decimals_at_most() {
        assert_eq!(share(b"51.2%"), Some(Some(5120)));
        assert_eq!(share(b"0.01%"), Some(Some(1)));
        assert_eq!(share(b".5%"), Some(Some(50)));
        assert_eq!(share(b"100%"), Some(Some(10_000)));
        assert_eq!(share(b"*"), Some(None));
        for wrong in [
            "",
            "%",
            "5",
            "0%",
            "0.00%",
            "0.001%",
            "1.2.3%",
            "-1%",
            "a%",
            "99999999999999999999%",
        ] {
            assert_eq!(share(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn clients_fall_into_the_same_parts_as_under_nginx() {
        let shares = [
            (Some(5120), Vec::new()),
            (Some(1000), Vec::new()),
            (None, Vec::new()),
        ];
        let parts = limits(shares.into()).expect("they are not more than all");
        let mut counts = [0; 3];
        for connection in 1..=20 {
            let hash = murmur_hash2(connection.to_string().as_bytes());
            let fits = |p: &Part| p.below.is_none_or(|b| hash < b);
            counts[parts.iter().position(fits).expect("the last takes all")] += 1;
        }
        assert_eq!(counts, [12, 2, 6]);
    }

    fn of(shares: &[Option<u64>]) -> Option<Vec<Option<u32>>> {
        let shares = shares.iter().map(|s| (*s, Vec::new())).collect();
        Some(limits(shares)?.into_iter().map(|p| p.below).collect())
    }

    #[test]
    fn limits_add_up_to_all_and_no_more() {
        let half = Some(2_147_483_647);
        assert_eq!(of(&[Some(5000), None]), Some(vec![half, None]));
        assert_eq!(of(&[Some(5000), Some(5000)]), Some(vec![half, None]));
        assert_eq!(of(&[Some(5000), Some(5001)]), None);
        assert_eq!(of(&[None, Some(1)]), None);
        assert_eq!(of(&[Some(1)]), Some(vec![Some(429_496)]));
        assert_eq!(of(&[Some(10_001)]), None);
    }
}
