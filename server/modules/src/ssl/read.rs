//! Files and identities of one load: servers with equal directives share them.
//!
//! Absent: the cache across loads, which is [`identity_cache`].

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{Builder, ConfError, Directive};
use server_http::assemble::ConfigBuilder;
use server_http::conf_core::NameServers;
use tls::{
    Authorities, Chain, CipherFault, Ciphers, ClientAuth, ClientMode, Config, FileFault, Identity,
    Key, KeyRing, Policy, Settings,
};

use super::fault::error;
use super::files::{self, MISMATCH, cannot_load};
use super::identity_cache::{self, Digest, FilePair, IdentityCache, SoundIdentity};
use super::tickets::Files;

/// The settings about clients: the mode, the depth, and the words for three files.
pub(super) type ClientId = (Option<ClientMode>, usize, [Option<Vec<u8>>; 3]);
/// Identifies the settings of a server: the address of its policy, and those of its identities.
type ConfigId = (usize, IdentityPlaces);
/// The addresses of the first identity and of the rest. Most servers have one, which needs no allocation.
type IdentityPlaces = (Option<(usize, usize)>, Vec<(usize, usize)>);

/// The files read so far.
#[derive(Default)]
pub(super) struct Read {
    /// Identities by their [`Pair::sources`]. Those reused by a reload are not inserted: finding them again is cheaper.
    identities: HashMap<Vec<u8>, SoundIdentity>,
    /// Buffer for the key of a lookup in `identities`.
    sources: Vec<u8>,
    /// The identities by their files and the bytes of these, so that equal files are one identity, too.
    table: IdentityCache,
    authorities: HashMap<PathBuf, Authorities>,
    passwords: HashMap<Vec<u8>, Arc<Vec<Vec<u8>>>>,
    responses: HashMap<Vec<u8>, Vec<u8>>,
    parameters: HashMap<Vec<u8>, ()>,
    rings: HashMap<Vec<Vec<u8>>, Arc<dyn KeyRing>>,
    clients: HashMap<ClientId, Option<Arc<ClientAuth>>>,
    /// By [`Settings::key`].
    policies: HashMap<Vec<u8>, Arc<Policy>>,
    /// Buffer for the key of a lookup in `policies`.
    policy_key: Vec<u8>,
    configs: HashMap<ConfigId, Arc<Config>>,
    ciphers: HashMap<String, Ciphers>,
    /// Certificates with OCSP responses that are fetched.
    pub(super) fetched: HashMap<Digest, Vec<Fetched>>,
    /// Places of directives about which there has been a warning: servers inherit them.
    warned: HashSet<(u32, u32, u32)>,
}

/// A certificate with a fetched OCSP response, shared by servers with equal settings.
pub(super) struct Fetched {
    pub(super) servers: Option<Arc<NameServers>>,
    pub(super) timeout_ms: u64,
    pub(super) identity: Identity,
}

/// The sources of an identity.
pub(super) struct Pair<'d> {
    pub(super) certificate: &'d Directive,
    pub(super) key: &'d Directive,
    pub(super) passwords: Option<&'d Directive>,
    pub(super) ocsp: Option<&'d [u8]>,
    /// Whether the identity itself is needed, even if the load only checks.
    pub(super) needed: bool,
}

impl Pair<'_> {
    /// Writes the words for the certificate, its key and the passwords, and the OCSP response, each with its length.
    fn sources(&self, into: &mut Vec<u8>) {
        let passwords = self.passwords.map_or(&[][..], |d| d.arg(0));
        let (certificate, key) = (self.certificate.arg(0), self.key.arg(0));
        into.clear();
        for word in [certificate, key, passwords, self.ocsp.unwrap_or_default()] {
            into.extend((word.len() as u64).to_be_bytes());
            into.extend(word);
        }
    }
}

impl Read {
    /// Returns an empty reader with room for as many identities as the last load had.
    pub(super) fn new() -> Self {
        Self {
            table: IdentityCache::with_room(),
            configs: HashMap::with_capacity(identity_cache::count()),
            ..Self::default()
        }
    }

    /// The suites of a list, each list interpreted once.
    pub(super) fn ciphers(&mut self, list: &str) -> Result<Ciphers, CipherFault> {
        if let Some(known) = self.ciphers.get(list) {
            return Ok(known.clone());
        }
        let ciphers = Ciphers::parse(list)?;
        self.ciphers.insert(list.to_owned(), ciphers.clone());
        Ok(ciphers)
    }

    /// Warns about a directive, once.
    pub(super) fn warn(&mut self, b: &mut ConfigBuilder, d: &Directive, text: impl Into<String>) {
        if self.warned.insert((d.pos.file, d.pos.line, d.pos.column)) {
            b.warn(error(d, text));
        }
    }

    /// Returns a certificate with its key. `None` if it is verified, but the load serves no requests and the identity
    /// is not needed.
    pub(super) fn identity(
        &mut self,
        b: &mut ConfigBuilder,
        pair: &Pair<'_>,
    ) -> Result<Option<Identity>, ConfError> {
        pair.sources(&mut self.sources);
        let known = match self.identities.get(&self.sources) {
            Some(SoundIdentity::Sound) if pair.needed => None,
            known => known.cloned(),
        };
        let known = match known {
            Some(known) => known,
            None => {
                let (found, is_kept) = self.load(b, pair)?;
                if !is_kept {
                    self.identities.insert(self.sources.clone(), found.clone());
                }
                found
            }
        };
        Ok(match known {
            SoundIdentity::Made(identity) => Some(identity),
            SoundIdentity::Sound => None,
        })
    }

    /// Reads a certificate and its key and builds the identity, unless one with equal bytes exists. The flag is true if
    /// the last load had these files: then a lookup is cheap.
    fn load(
        &mut self,
        b: &mut ConfigBuilder,
        pair: &Pair<'_>,
    ) -> Result<(SoundIdentity, bool), ConfError> {
        let text = files::load(b, pair.certificate, CERTIFICATE)?;
        // Errors of the certificate are reported first.
        let secret = files::load(b, pair.key, KEY);
        let passwords = match pair.passwords {
            Some(d) if secret.is_ok() => self.passwords(b, d),
            _ => Ok(Arc::default()),
        };
        let (Ok(secret), Ok(passwords)) = (&secret, &passwords) else {
            chain(b, pair, &text)?;
            secret?;
            passwords?;
            return Ok((SoundIdentity::Sound, false));
        };
        let serves = !b.loader().source().only_checks();
        // Who only checks makes copies of the texts when they are known to be sound.
        let is_whole = serves && pair.ocsp.is_none() && pair.passwords.is_none();
        let texts = is_whole.then(|| FilePair::new(&text, secret));
        let kept = texts.as_ref().and_then(|texts| self.table.take_over(texts));
        if let Some(kept) = kept {
            return Ok((kept, true));
        }
        let parts = [&text, secret, pair.ocsp.unwrap_or_default()];
        let words = passwords.iter().map(Vec::as_slice);
        let digest = identity_cache::digest(parts.into_iter().chain(words));
        let found = match self.table.find(&digest, pair.needed || serves) {
            Some(known) => known,
            None => SoundIdentity::Made(make(b, pair, &text, secret, passwords)?),
        };
        self.table.insert(digest, texts, &found);
        Ok((found, false))
    }

    /// Keeps the verified identities for the next load.
    pub(super) fn remember(self) {
        self.table.remember();
    }

    /// The passwords of a file: a pipe can be read once.
    fn passwords(
        &mut self,
        b: &mut ConfigBuilder,
        d: &Directive,
    ) -> Result<Arc<Vec<Vec<u8>>>, ConfError> {
        let read = || files::read_passwords(b, d).map(Arc::new);
        memoized(&mut self.passwords, d.arg(0).to_vec(), read)
    }

    /// An OCSP response of a file.
    pub(super) fn response(
        &mut self,
        b: &mut ConfigBuilder,
        d: &Directive,
    ) -> Result<Vec<u8>, ConfError> {
        let read = || files::ocsp(b, d);
        memoized(&mut self.responses, d.arg(0).to_vec(), read)
    }

    /// Looks at a file of parameters that is not used.
    pub(super) fn parameters(
        &mut self,
        b: &mut ConfigBuilder,
        d: &Directive,
    ) -> Result<(), ConfError> {
        let check = || files::dhparam(b, d);
        memoized(&mut self.parameters, d.arg(0).to_vec(), check)
    }

    /// Keys for tickets, of these files.
    pub(super) fn ring(
        &mut self,
        b: &mut ConfigBuilder,
        list: &[Arc<Directive>],
    ) -> Result<Arc<dyn KeyRing>, ConfError> {
        let id: Vec<Vec<u8>> = list.iter().map(|d| d.arg(0).to_vec()).collect();
        memoized(&mut self.rings, id, || {
            let keys: Result<_, _> = list.iter().map(|d| files::ticket_key(b, d)).collect();
            Ok(Arc::new(Files(keys?)))
        })
    }

    /// Certificates of authorities.
    pub(super) fn authorities(
        &mut self,
        b: &mut ConfigBuilder,
        d: &Directive,
    ) -> Result<Authorities, ConfError> {
        let path = b.loader().conf_path(d.arg(0));
        memoized(&mut self.authorities, path, || {
            let text = files::load(b, d, CERTIFICATE)?;
            Authorities::from_pem(&text)
                .map_err(|fault| cannot_load(b, d, CERTIFICATE, &fault.to_string()))
        })
    }

    /// Returns the client verification of these files; `make` reads them if they are new.
    pub(super) fn client(
        &mut self,
        id: ClientId,
        make: impl FnOnce(&mut Self) -> Result<Option<ClientAuth>, ConfError>,
    ) -> Result<Option<Arc<ClientAuth>>, ConfError> {
        if let Some(known) = self.clients.get(&id) {
            return Ok(known.clone());
        }
        let client = make(self)?.map(Arc::new);
        self.clients.insert(id, client.clone());
        Ok(client)
    }

    /// Returns the finished settings of a server. Servers with equal settings share them.
    pub(super) fn config(&mut self, mut settings: Settings) -> Result<Arc<Config>, ConfError> {
        let identities = std::mem::take(&mut settings.identities);
        settings.key(&mut self.policy_key);
        let policy = match self.policies.get(&self.policy_key) {
            Some(policy) => Arc::clone(policy),
            None => {
                let failed = |error| ConfError::new(format!("SSL_CTX_new() failed ({error})"));
                let policy = Arc::new(Policy::build(settings).map_err(failed)?);
                let key = self.policy_key.clone();
                self.policies.insert(key, Arc::clone(&policy));
                policy
            }
        };
        Ok(self.config_of(policy, identities))
    }

    /// Returns the settings with this policy and these identities. Servers with equal parts share them.
    pub(super) fn config_of(
        &mut self,
        policy: Arc<Policy>,
        identities: Vec<Identity>,
    ) -> Arc<Config> {
        let mut places = identities.iter().map(Identity::place);
        let places = (places.next(), places.collect());
        let id: ConfigId = (Arc::as_ptr(&policy).addr(), places);
        let config = self.configs.entry(id);
        let config = config.or_insert_with(|| Arc::new(Config::of(policy, identities)));
        Arc::clone(config)
    }
}

/// Returns the value of a key, which `make` computes if it is missing.
fn memoized<K: Eq + Hash, V: Clone>(
    known: &mut HashMap<K, V>,
    key: K,
    make: impl FnOnce() -> Result<V, ConfError>,
) -> Result<V, ConfError> {
    if let Some(value) = known.get(&key) {
        return Ok(value.clone());
    }
    let value = make()?;
    known.insert(key, value.clone());
    Ok(value)
}

fn chain(b: &mut ConfigBuilder, pair: &Pair<'_>, text: &[u8]) -> Result<Chain, ConfError> {
    Chain::from_pem(text)
        .map_err(|fault| cannot_load(b, pair.certificate, CERTIFICATE, &fault.to_string()))
}

fn make(
    b: &mut ConfigBuilder,
    pair: &Pair<'_>,
    text: &[u8],
    secret: &[u8],
    passwords: &[Vec<u8>],
) -> Result<Identity, ConfError> {
    let chain = chain(b, pair, text)?;
    let key = Key::from_pem(secret, passwords).map_err(|fault| {
        let error = cannot_load(b, pair.key, KEY, &fault.to_string());
        match fault {
            FileFault::BadPassword if passwords.is_empty() => error.with_hint(
                "the key is encrypted: set \"ssl_password_file\" to a file with its password",
            ),
            _ => error,
        }
    })?;
    Identity::new(chain, &key, pair.ocsp.map(<[u8]>::to_vec)).map_err(|_| {
        let name = files::display_name(b, pair.key);
        error(
            pair.key,
            format!("SSL_CTX_use_PrivateKey(\"{name}\") failed {MISMATCH}"),
        )
    })
}

/// The kinds of files, as messages name them.
const CERTIFICATE: &str = "certificate";
const KEY: &str = "certificate key";
