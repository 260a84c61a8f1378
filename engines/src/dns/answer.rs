//! Evaluates a response for the queried name: its records, found by way of its aliases.
//!
//! Records of other names are skipped: a response cannot answer a question that was not sent.
//!
//! Source: RFC 1034, section 3.6.2; RFC 2181, section 10.1.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::message::{
    QueryType, Record, Reply, TYPE_A, TYPE_AAAA, TYPE_CNAME, TYPE_PTR, TYPE_SRV, word_at,
};
use super::name::Name;
use super::refused::Refused;
use super::resolver::ALIASES_MAX;

/// Answer to one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryAnswer {
    /// Data of the answer.
    pub(super) what: ResponseData,
    /// Time to live, in seconds.
    pub(super) ttl_s: u32,
}

/// Data of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResponseData {
    /// Nothing.
    Nothing,
    /// The name is an alias of this one, and no other record of it was sent.
    Alias(Name),
    /// IPv4 addresses.
    V4(Vec<Ipv4Addr>),
    /// IPv6 addresses.
    V6(Vec<Ipv6Addr>),
    /// Hosts that offer a service, by priority.
    Services(Vec<Service>),
    /// The name of an address.
    Name(Name),
}

/// One SRV record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) priority: u16,
    pub(super) weight: u16,
    pub(super) port: u16,
    pub(super) host: Name,
}

/// Reads the answers of a response to a query of this type.
///
/// # Errors
/// A record is malformed, whether it would have counted or not.
pub(super) fn read(reply: &Reply<'_>, kind: QueryType) -> Result<QueryAnswer, Refused> {
    let mut records = Vec::new();
    for record in reply.records()? {
        if let Some(data) = data(reply.message(), &record, kind)? {
            records.push((record, data));
        }
    }
    let mut name = &reply.name;
    let mut ttl_s = u32::MAX;
    for aliases in 0..=ALIASES_MAX {
        let own = records.iter().filter(|(record, _)| record.owner == *name);
        let what = gather(own.clone(), &mut ttl_s);
        if let Some(what) = what {
            return Ok(QueryAnswer { what, ttl_s });
        }
        let next = own.clone().find_map(|(record, data)| match data {
            Data::Alias(target) => Some((target, record.ttl_s)),
            _ => None,
        });
        let Some((target, ttl)) = next else {
            let what = if aliases == 0 {
                ResponseData::Nothing
            } else {
                ResponseData::Alias(name.clone())
            };
            return Ok(QueryAnswer { what, ttl_s });
        };
        ttl_s = ttl_s.min(ttl);
        name = target;
    }
    Ok(QueryAnswer {
        what: ResponseData::Nothing,
        ttl_s,
    })
}

/// The data of a record that may matter.
enum Data {
    Alias(Name),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    Service(Service),
    Name(Name),
}

fn data(message: &[u8], record: &Record, asked: QueryType) -> Result<Option<Data>, Refused> {
    let bytes = &message[record.start..record.end];
    let name = |skip: usize, kind| {
        let (name, end) = Name::read(message, record.start + skip, record.end)?;
        if end == record.end {
            Ok(name)
        } else {
            Err(Refused::Record(kind))
        }
    };
    Ok(Some(match (record.kind, asked) {
        (TYPE_CNAME, _) => Data::Alias(name(0, "CNAME")?),
        (TYPE_A, QueryType::A) => {
            let octets = <[u8; 4]>::try_from(bytes).map_err(|_| Refused::Record("A"))?;
            Data::V4(octets.into())
        }
        (TYPE_AAAA, QueryType::Aaaa) => {
            let octets = <[u8; 16]>::try_from(bytes).map_err(|_| Refused::Record("AAAA"))?;
            Data::V6(octets.into())
        }
        (TYPE_A, QueryType::Aaaa) => return Err(Refused::UnexpectedRecord("A")),
        (TYPE_AAAA, QueryType::A) => return Err(Refused::UnexpectedRecord("AAAA")),
        (TYPE_SRV, QueryType::Srv) => {
            let word = |n| word_at(bytes, n).ok_or(Refused::Record("SRV"));
            Data::Service(Service {
                priority: word(0)?,
                // As in nginx a weight of 0 counts as 1.
                weight: word(2)?.max(1),
                port: word(4)?,
                host: name(SRV_FIELDS_BYTES, "SRV")?,
            })
        }
        (TYPE_PTR, QueryType::Ptr) => Data::Name(name(0, "PTR")?),
        _ => return Ok(None),
    }))
}

/// Joins the data of all records of one name; records beyond the limit are left out.
fn gather<'a>(
    records: impl Iterator<Item = &'a (Record, Data)> + Clone,
    ttl_s: &mut u32,
) -> Option<ResponseData> {
    let found = records.filter(|(_, data)| !matches!(data, Data::Alias(_)));
    let shortest = found.clone().map(|(record, _)| record.ttl_s).min()?;
    *ttl_s = shortest.min(*ttl_s);
    let data = found.map(|(_, data)| data);
    let v4 = data.clone().filter_map(|data| match data {
        Data::V4(ip) => Some(*ip),
        _ => None,
    });
    let v6 = data.clone().filter_map(|data| match data {
        Data::V6(ip) => Some(*ip),
        _ => None,
    });
    let services = data.clone().filter_map(|data| match data {
        Data::Service(service) => Some(service.clone()),
        _ => None,
    });
    // All of them have the one requested type.
    match data.clone().next()? {
        Data::V4(_) => Some(ResponseData::V4(v4.take(ADDRESSES_MAX).collect())),
        Data::V6(_) => Some(ResponseData::V6(v6.take(ADDRESSES_MAX).collect())),
        Data::Service(_) => {
            let mut services: Vec<Service> = services.collect();
            services.sort_by_key(|service| service.priority);
            services.truncate(SERVICES_MAX);
            Some(ResponseData::Services(services))
        }
        Data::Name(name) => Some(ResponseData::Name(name.clone())),
        Data::Alias(_) => None,
    }
}

/// Most addresses of one family taken from an answer; the rest is left out.
pub const ADDRESSES_MAX: usize = 512;
/// Most hosts taken from the answer for a service, the most important first; the rest is left out.
pub const SERVICES_MAX: usize = 64;
/// Priority, weight and port.
const SRV_FIELDS_BYTES: usize = 6;
