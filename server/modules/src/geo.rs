//! `geo`: a variable with a value by the address of the client, or by an address in another variable.
//!
//! A block is parsed into a [`Draft`] of networks or ranges, then into two sorted lists of spans. One binary search
//! finds the longest prefix. Text that is no address counts as 255.255.255.255, as does an address of a kind without a
//! list (UNIX-domain, or IPv6 with ranges). Binary bases (`.bin`) are neither read nor written.
//!
//! Source: nginx documentation, `ngx_http_geo_module`.

mod ordered;
mod ranges;
mod spans;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive, Word};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange, Peer};
use server_http::module::Module;
use server_http::string_pool::{Interner, StringPool};
use server_http::value::Value;
use server_http::vars::Compute;

use crate::networks::{self, Network, parse_ip};
use ranges::Ranges;
use spans::{Prefixes, Spans};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "geo",
    directives: &[ROWS],
    ..Module::EMPTY
};

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Creates a variable; its value depends on an address.
    block "geo": Contexts::HTTP, TAKE12, "", "[$address] $variable { ... }" => geo;
}

/// One `geo`.
struct Geo {
    /// The value with the address; `None` for the client's own.
    source: Option<Value>,
    proxies: Vec<Network>,
    recursive: bool,
    volatile: bool,
    values: StringPool,
    v4: Spans<u32>,
    /// `None` with `ranges`, which are IPv4 only.
    v6: Option<Spans<u128>>,
}

fn geo(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let last = d.args.len() - 1;
    for word in &d.args {
        if word.text.len() < 2 || !word.text.starts_with(b"$") {
            let text = format!("invalid variable name \"{}\"", word.as_str());
            return Err(ConfError::word(d, word, text));
        }
    }
    let source = match last {
        0 => None,
        _ => Some(Value::compile(b, d, d.word(0))?),
    };
    let mut draft = Draft::default();
    draft.values.add(b"");
    conf::each(b, d.items(), |b, line| draft.line(b, line))?;
    b.vars
        .define(&d.arg(last)[1..], Arc::new(draft.finish(source)))
        .map_err(|e| ConfError::word(d, d.word(last), e))?;
    Ok(())
}

/// The contents of a block while it is parsed.
#[derive(Default)]
struct Draft {
    proxies: Vec<Network>,
    recursive: bool,
    volatile: bool,
    /// The first value is empty: it is that of addresses without an entry.
    values: Interner,
    entries: Entries,
}

/// The kind of entries; the first line decides.
#[derive(Default)]
enum Entries {
    #[default]
    None,
    Networks(Prefixes<u32>, Prefixes<u128>),
    /// With the value of `default`.
    Ranges(Ranges, Option<u32>),
}

impl Draft {
    fn line(&mut self, b: &mut ConfigBuilder, line: &Directive) -> Result<(), ConfError> {
        match (line.name.text.as_slice(), line.args.as_slice()) {
            (b"ranges", []) => return self.by_ranges(line),
            (b"proxy_recursive", []) => self.recursive = true,
            (b"volatile", []) => self.volatile = true,
            (b"proxy", [word]) => self.proxies.push(networks::network(b, line, word)?),
            (key, [word]) => {
                if let Entries::None = self.entries {
                    self.entries = Entries::Networks(Prefixes::default(), Prefixes::default());
                }
                return match key {
                    b"default" => self.set_default(b, line, word),
                    b"delete" => self.delete(b, line, word),
                    _ => self.add(b, line, word),
                };
            }
            _ => return Err(ConfError::at(line, "invalid number of the geo parameters")),
        }
        Ok(())
    }

    fn by_ranges(&mut self, line: &Directive) -> Result<(), ConfError> {
        match self.entries {
            Entries::None => self.entries = Entries::Ranges(Ranges::default(), None),
            Entries::Ranges(..) => {}
            Entries::Networks(..) => {
                let text =
                    "the \"ranges\" directive must be the first directive inside \"geo\" block";
                return Err(ConfError::at(line, text));
            }
        }
        Ok(())
    }

    /// Returns the position of a value; equal values are stored once.
    fn value(&mut self, line: &Directive, text: &[u8]) -> Result<u32, ConfError> {
        let value = u32::try_from(self.values.add(text));
        value.map_err(|_| ConfError::at(line, "the values of \"geo\" exceed 4 GiB"))
    }

    fn display(&self, value: u32) -> String {
        String::from_utf8_lossy(self.values.pool().at(value as usize)).into_owned()
    }

    fn set_default(
        &mut self,
        b: &mut ConfigBuilder,
        line: &Directive,
        word: &Word,
    ) -> Result<(), ConfError> {
        let value = self.value(line, &word.text)?;
        if let Entries::Ranges(_, default) = &mut self.entries {
            if let Some(old) = default.replace(value) {
                let (new, old) = (word.as_str(), self.display(old));
                let text =
                    format!("duplicate default geo range value: \"{new}\", old value: \"{old}\"");
                b.warn(ConfError::at(line, text));
            }
            return Ok(());
        }
        self.add_network(b, line, Network::V4(0, 0), value);
        self.add_network(b, line, Network::V6(0, 0), value);
        Ok(())
    }

    fn add(
        &mut self,
        b: &mut ConfigBuilder,
        line: &Directive,
        word: &Word,
    ) -> Result<(), ConfError> {
        let value = self.value(line, &word.text)?;
        let Entries::Ranges(ranges, _) = &mut self.entries else {
            let network = networks::network(b, line, &line.name)?;
            self.add_network(b, line, network, value);
            return Ok(());
        };
        let net = line.name.as_str();
        let (start, end) = ranges::parse(&line.name.text)
            .ok_or_else(|| ConfError::at(line, format!("invalid range \"{net}\"")))?;
        let replaced = ranges.add(start, end, value).map_err(|(s, e)| {
            ConfError::at(line, format!("range \"{net}\" overlaps \"{s}-{e}\""))
        })?;
        for old in replaced {
            let (new, old) = (word.as_str(), self.display(old));
            let text = format!("duplicate range \"{net}\", value: \"{new}\", old value: \"{old}\"");
            b.warn(ConfError::at(line, text));
        }
        Ok(())
    }

    fn add_network(
        &mut self,
        b: &mut ConfigBuilder,
        line: &Directive,
        network: Network,
        value: u32,
    ) {
        let Entries::Networks(v4, v6) = &mut self.entries else {
            return;
        };
        let old = match network {
            Network::V4(net, bits) => v4.insert((net, bits), value),
            Network::V6(net, bits) => v6.insert((net, bits), value),
            Network::Unix => None,
        };
        if let Some(old) = old {
            let (net, new, old) = (line.name.as_str(), self.display(value), self.display(old));
            let text =
                format!("duplicate network \"{net}\", value: \"{new}\", old value: \"{old}\"");
            b.warn(ConfError::at(line, text));
        }
    }

    fn delete(
        &mut self,
        b: &mut ConfigBuilder,
        line: &Directive,
        word: &Word,
    ) -> Result<(), ConfError> {
        let net = word.as_str();
        let (there, what) = match &mut self.entries {
            Entries::Ranges(ranges, _) => {
                let (start, end) = ranges::parse(&word.text).ok_or_else(|| {
                    ConfError::word(line, word, format!("invalid range \"{net}\""))
                })?;
                (ranges.delete(start, end), "address range")
            }
            Entries::Networks(v4, v6) => {
                let old = match networks::network(b, line, word)? {
                    Network::V4(net, bits) => v4.remove(&(net, bits)),
                    Network::V6(net, bits) => v6.remove(&(net, bits)),
                    Network::Unix => None,
                };
                (old.is_some(), "network")
            }
            Entries::None => (true, ""),
        };
        if !there {
            let text = format!("no {what} \"{net}\" to delete");
            b.warn(ConfError::word(line, word, text));
        }
        Ok(())
    }

    fn finish(self, source: Option<Value>) -> Geo {
        let (v4, v6) = match self.entries {
            Entries::None => (Spans::default(), Some(Spans::default())),
            Entries::Networks(v4, v6) => (
                Spans::of_prefixes(v4, 32),
                Some(Spans::of_prefixes(v6, 128)),
            ),
            Entries::Ranges(ranges, default) => (ranges.finish(default.unwrap_or(0)), None),
        };
        Geo {
            source,
            proxies: self.proxies,
            recursive: self.recursive,
            volatile: self.volatile,
            values: self.values.finish(),
            v4,
            v6,
        }
    }
}

impl Geo {
    /// Returns the address to look up, if there is one.
    fn address(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<IpAddr> {
        let peer = match &self.source {
            None => x.client.peer,
            Some(source) => {
                let ip = parse_ip(&source.to_vec(x, cx))?;
                Peer::Inet(SocketAddr::new(ip, 0))
            }
        };
        match networks::client(x, peer, &self.proxies, self.recursive) {
            Peer::Inet(addr) => Some(addr.ip().to_canonical()),
            Peer::Unix => None,
        }
    }

    fn find(&self, address: Option<IpAddr>) -> u32 {
        match (address, &self.v6) {
            (Some(IpAddr::V4(ip)), _) => self.v4.find(ip.to_bits()),
            (Some(IpAddr::V6(ip)), Some(v6)) => v6.find(ip.to_bits()),
            _ => self.v4.find(u32::MAX),
        }
    }
}

impl Compute for Geo {
    fn compute(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<Vec<u8>> {
        let address = self.address(x, cx);
        Some(self.values.at(self.find(address) as usize).to_vec())
    }

    fn volatile(&self) -> bool {
        self.volatile
    }
}
